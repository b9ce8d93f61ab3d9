// Kernels below the roofs of their devices. Written by bragg/views/web/points.py.

// biome-ignore lint/suspicious/noEmptyInterface: its columns come with the view
export interface RooflineData {}
