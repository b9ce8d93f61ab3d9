"""Two workers of the loader cannot keep up with the GPU."""

import numpy as np
import torch


class Images(torch.utils.data.Dataset):
    """Images that take long to decode."""

    def __len__(self):
        return 640

    def __getitem__(self, index):
        image = np.random.default_rng(index).normal(size=(256, 256))
        return torch.from_numpy(np.fft.ifft2(np.fft.fft2(image)).real.astype(np.float32))


if __name__ == "__main__":
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 64, 7), torch.nn.Conv2d(64, 64, 3)).cuda()
    loader = torch.utils.data.DataLoader(Images(), batch_size=32, num_workers=1, pin_memory=True)
    with torch.no_grad():
        for batch in loader:
            model(batch.cuda(non_blocking=True)[:, None])
    torch.cuda.synchronize()
