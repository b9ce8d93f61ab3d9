"""timm's ResNet-50: training on random images that are made on the CPU."""

import timm
import torch

model = timm.create_model("resnet50", num_classes=100).cuda().train()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for _ in range(20):
    images, labels = torch.randn(32, 3, 224, 224), torch.randint(0, 100, (32,))
    with torch.autocast("cuda", torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(f"{loss.item():.3f}")
