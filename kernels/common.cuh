// What the kernels share: words of fixed size, a graph whose weights are compressed, and what differs between a device
// and a host compiler. No header is included: NVRTC has none, and nvcc and host compilers need none.
#ifndef HIPPOGPU_COMMON_CUH
#define HIPPOGPU_COMMON_CUH

#ifdef __CUDACC__
#define SHARED_CODE __host__ __device__ __forceinline__
#else
#define SHARED_CODE inline
#endif

typedef unsigned char Byte;
typedef unsigned int Word;
typedef long long Long;
typedef unsigned long long Count;

// V neighbouring float32 of one row; V = 4 is one 16-byte load.
template <int V> struct alignas(4 * V) Lanes {
  float value[V];
};

template <int V> SHARED_CODE Lanes<V> no_lanes() {
  Lanes<V> lanes;
#pragma unroll
  for (int v = 0; v < V; ++v) lanes.value[v] = 0.0f;
  return lanes;
}

template <int V> SHARED_CODE Lanes<V> load_lanes(const float* from) { return *(const Lanes<V>*)from; }

template <int V> SHARED_CODE void store_lanes(float* to, const Lanes<V>& lanes) { *(Lanes<V>*)to = lanes; }

// Compressed rows. The edges of row i are indptr[i] … indptr[i+1]: first those whose weight stands in the book of 256
// frequent values (one byte each), then those that keep their own float32.
//   exact_before (n+1) number of edges of the second kind in all rows before i
struct Edges {
  const Long* indptr;
  const Long* exact_before;
  const int* columns;
  const Byte* codes;
  const float* exact;
  const float* book;
};

SHARED_CODE Long first_edge(const Edges& edges, Long row) { return edges.indptr[row]; }

SHARED_CODE Long last_edge(const Edges& edges, Long row) { return edges.indptr[row + 1]; }

// Where the edges with a float32 of their own begin.
SHARED_CODE Long exact_edge(const Edges& edges, Long row) {
  return edges.indptr[row + 1] - (edges.exact_before[row + 1] - edges.exact_before[row]);
}

SHARED_CODE float edge_weight(const Edges& edges, Long edge, Long exact_before, Long exact_from) {
  return edge < exact_from ? edges.book[edges.codes[edge - exact_before]]
                           : edges.exact[exact_before + (edge - exact_from)];
}

// Old value, after an addition that no other thread can split.
SHARED_CODE Count add_whole(Count* to, Count amount) {
#ifdef __CUDA_ARCH__
  return atomicAdd(to, amount);
#else
  Count old = *to;
  *to = old + amount;
  return old;
#endif
}

SHARED_CODE int add_whole(int* to, int amount) {
#ifdef __CUDA_ARCH__
  return atomicAdd(to, amount);
#else
  int old = *to;
  *to = old + amount;
  return old;
#endif
}

SHARED_CODE void keep_greatest(Count* to, Count value) {
#ifdef __CUDA_ARCH__
  atomicMax(to, value);
#else
  if (value > *to) *to = value;
#endif
}

SHARED_CODE void keep_greatest(Word* to, Word value) {
#ifdef __CUDA_ARCH__
  atomicMax(to, value);
#else
  if (value > *to) *to = value;
#endif
}

SHARED_CODE void keep_least(Word* to, Word value) {
#ifdef __CUDA_ARCH__
  atomicMin(to, value);
#else
  if (value < *to) *to = value;
#endif
}

#endif
