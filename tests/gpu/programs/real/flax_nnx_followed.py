"""The flax network with the change of its first finding: the inputs are made in the jitted step."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Network(nnx.Module):
    """Three layers."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.layers = nnx.List([nnx.Linear(n, m, rngs=rngs) for n, m in ((256, 1024), (1024, 1024), (1024, 10))])

    def __call__(self, x: jax.Array) -> jax.Array:
        """Logits."""
        for layer in self.layers[:-1]:
            x = nnx.relu(layer(x))
        return self.layers[-1](x)


@nnx.jit
def train_step(model: Network, optimizer: nnx.Optimizer, seed: int) -> jax.Array:
    """One step: its loss."""
    key_x, key_y = jax.random.split(jax.random.key(seed))
    x, y = jax.random.normal(key_x, (64, 256)), jax.random.randint(key_y, (64,), 0, 10)

    def loss_of(model: Network) -> jax.Array:
        return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()

    loss, gradients = nnx.value_and_grad(loss_of)(model)
    optimizer.update(model, gradients)
    return loss


model = Network(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
for step in range(200):
    loss = train_step(model, optimizer, step)
print(f"{jnp.asarray(loss).item():.3f}")
