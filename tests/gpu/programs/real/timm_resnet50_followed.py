"""timm's ResNet-50 with the change of its first finding: images are made on the GPU."""

import timm
import torch

model = timm.create_model("resnet50", num_classes=100).cuda().train()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for _ in range(20):
    images, labels = torch.randn(32, 3, 224, 224, device="cuda"), torch.randint(0, 100, (32,), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(f"{loss.item():.3f}")
