__device__ inline float square(float v) { return v * v; }
__device__ inline float poly(float v) {
  float s = square(v);
  return s * 3.0f + square(s) - sqrtf(v);
}
