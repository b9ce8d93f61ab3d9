// Two profiles on one tree. Written by bragg/views/web/diff.py.

// biome-ignore lint/suspicious/noEmptyInterface: its columns come with the view
export interface DifferenceData {}
