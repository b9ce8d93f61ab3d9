"""The ranks of a distributed job: where they ran, their clocks, and what each tells for comparing it with others."""
