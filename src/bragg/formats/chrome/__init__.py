"""Chrome trace: JSON events of many tools, and written for them."""
