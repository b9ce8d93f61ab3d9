"""Other trees of the same time: modules, steps and regions, compiled regions, JAX operations."""
