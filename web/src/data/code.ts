// The code of kernels at each stage of their compilation. Written by bragg/views/web/code.py.

export interface KernelText {
  /** `symbol/hash`: tells specializations apart. */
  key: string;
}
