#include "poly.h"
template <int N>
__device__ float sum_of(const float* x) {
  float total = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) total += poly(x[i]);
  return total;
}
__device__ __noinline__ float apart(float v) { return poly(v) + square(v); }
__global__ void first(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = sum_of<4>(x + 4 * i);
}
__global__ void second(const float* x, float* y, int n) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  y[i] = apart(tile[255 - threadIdx.x]) + square(tile[threadIdx.x]);
}
