"""The repaired twin of exposed_copies_slow.py."""

import torch

model = torch.nn.Linear(4096, 4096, device="cuda")
torch.set_float32_matmul_precision("high")
batches = [torch.randn(4096, 4096).pin_memory() for _ in range(4)]
places = [torch.empty(4096, 4096, device="cuda") for _ in range(2)]
copying = torch.cuda.Stream()
copied, used = ([torch.cuda.Event() for _ in range(2)] for _ in range(2))
total = torch.zeros((), device="cuda")
for number in range(100):
    at = number % 2
    with torch.cuda.stream(copying):
        copying.wait_event(used[at])
        places[at].copy_(batches[number % 4], non_blocking=True)
        copied[at].record()
    torch.cuda.current_stream().wait_event(copied[at])
    for _ in range(3):
        total += model(places[at]).square().mean().detach()
    used[at].record()
torch.cuda.synchronize()
