// One step of the walk for B questions at once: out = omega · (scale · (A·y + r)) + (1 − omega) · out.
//
// y, r, out (n, B) float32, row-major, so that the questions are the lanes. A warp is cut into groups: `column_lanes`
// threads take V columns each, `edge_lanes` such teams share the edges of a row and are summed by shuffles. Rows longer
// than `longest` are cut into parts of at most that many edges: step_parts sums each part, step_long the parts of a row,
// always in the same order, so that a result is the same on every run.
#include "common.cuh"

struct Step {
  const float* y;
  const float* r;
  const float* scale;
  float* out;
  float omega;
  int scaled;
  Long batch;
};

// Sum over the edges first, first + stride, … below last of weight · y[column of the edge], for V columns of y.
template <int V>
SHARED_CODE Lanes<V> weighed_sum(
    const Edges& edges, const float* y, Long batch, Long row, Long column, Long first, Long last, int stride) {
  Lanes<V> sum = no_lanes<V>();
  const Long before = edges.exact_before[row], exact_from = exact_edge(edges, row);
#pragma unroll 4
  for (Long edge = first; edge < last; edge += stride) {
    const float weight = edge_weight(edges, edge, before, exact_from);
    const Lanes<V> neighbour = load_lanes<V>(y + (Long)edges.columns[edge] * batch + column);
#pragma unroll
    for (int v = 0; v < V; ++v) sum.value[v] += weight * neighbour.value[v];
  }
  return sum;
}

// Sum of the rows first, first + stride, … below last of the parts' sums (parts, B).
template <int V>
SHARED_CODE Lanes<V> sum_of_parts(const float* sums, Long batch, Long column, Long first, Long last, int stride) {
  Lanes<V> sum = no_lanes<V>();
  for (Long part = first; part < last; part += stride) {
    const Lanes<V> one = load_lanes<V>(sums + part * batch + column);
#pragma unroll
    for (int v = 0; v < V; ++v) sum.value[v] += one.value[v];
  }
  return sum;
}

// The new value of V columns of a row, given A·y there. With omega = 1 what stood in `out` is not read.
template <int V> SHARED_CODE void finish_row(const Step& step, Long row, Long column, const Lanes<V>& sum) {
  const Long place = row * step.batch + column;
  const float factor = step.scaled ? step.scale[row] : 1.0f;
  const Lanes<V> restart = load_lanes<V>(step.r + place);
  Lanes<V> fresh;
#pragma unroll
  for (int v = 0; v < V; ++v) fresh.value[v] = factor * (sum.value[v] + restart.value[v]);
  if (step.omega != 1.0f) {
    const Lanes<V> before = load_lanes<V>(step.out + place);
#pragma unroll
    for (int v = 0; v < V; ++v)
      fresh.value[v] = step.omega * fresh.value[v] + (1.0f - step.omega) * before.value[v];
  }
  store_lanes<V>(step.out + place, fresh);
}

// |(1 − d)·s + d·P·x − x| of a row and column, given the sum of weight · x ÷ degree over its edges; float64, and
// without a division, which would be a call.
SHARED_CODE double left_over(double damping, double seed, double walked, double mass) {
  const double left = (1.0 - damping) * seed + damping * walked - mass;
  return left < 0.0 ? -left : left;
}

SHARED_CODE double walked_sum(
    const Edges& edges, const float* x, const double* inverse_degrees, Long batch, Long row, Long column, Long first,
    Long last, int stride) {
  double sum = 0.0;
  const Long before = edges.exact_before[row], exact_from = exact_edge(edges, row);
  for (Long edge = first; edge < last; edge += stride) {
    const Long neighbour = edges.columns[edge];
    sum += (double)edge_weight(edges, edge, before, exact_from) * (double)x[neighbour * batch + column] *
           inverse_degrees[neighbour];
  }
  return sum;
}

#ifdef __CUDACC__

// Where a thread stands: the number of its group, its team in the group, and the first of its columns.
struct Place {
  Long group;
  int team;
  Long column;
};

template <int V> __device__ __forceinline__ Place place_of_thread(int column_lanes, int edge_lanes) {
  const int lanes = column_lanes * edge_lanes, lane = threadIdx.x % lanes;
  Place place;
  place.group = (Long)blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes;
  place.team = lane / column_lanes;
  place.column = ((Long)blockIdx.y * column_lanes + lane % column_lanes) * V;
  return place;
}

// The teams of a group are summed; every thread of the warp must come here.
template <int V> __device__ __forceinline__ void sum_teams(Lanes<V>& sum, int column_lanes, int edge_lanes) {
  for (int offset = column_lanes * edge_lanes / 2; offset >= column_lanes; offset /= 2)
#pragma unroll
    for (int v = 0; v < V; ++v) sum.value[v] += __shfl_xor_sync(0xffffffffu, sum.value[v], offset);
}

template <int V>
__device__ __forceinline__ void step_rows(
    const Edges& edges, const Step& step, Long nodes, Long longest, int column_lanes, int edge_lanes) {
  const Place place = place_of_thread<V>(column_lanes, edge_lanes);
  const Long row = place.group;
  bool here = row < nodes && place.column < step.batch;
  Lanes<V> sum = no_lanes<V>();
  if (here) {
    const Long first = first_edge(edges, row), last = last_edge(edges, row);
    here = last - first <= longest;
    if (here)
      sum = weighed_sum<V>(edges, step.y, step.batch, row, place.column, first + place.team, last, edge_lanes);
  }
  sum_teams<V>(sum, column_lanes, edge_lanes);
  if (here && place.team == 0) finish_row<V>(step, row, place.column, sum);
}

// Parts of the long rows: part p sums the edges part_first[p] … part_last[p] of row part_row[p] into sums (parts, B).
template <int V>
__device__ __forceinline__ void step_parts(
    const Edges& edges, const float* y, Long batch, const Long* part_row, const Long* part_first, const Long* part_last,
    Long parts, float* sums, int column_lanes, int edge_lanes) {
  const Place place = place_of_thread<V>(column_lanes, edge_lanes);
  const bool here = place.group < parts && place.column < batch;
  Lanes<V> sum = no_lanes<V>();
  if (here)
    sum = weighed_sum<V>(
        edges, y, batch, part_row[place.group], place.column, part_first[place.group] + place.team,
        part_last[place.group], edge_lanes);
  sum_teams<V>(sum, column_lanes, edge_lanes);
  if (here && place.team == 0) store_lanes<V>(sums + place.group * batch + place.column, sum);
}

// The long rows: row long_rows[i] is the sum of the parts part_ptr[i] … part_ptr[i+1].
template <int V>
__device__ __forceinline__ void step_long(
    const Step& step, const Long* long_rows, const Long* part_ptr, Long rows, const float* sums, int column_lanes,
    int edge_lanes) {
  const Place place = place_of_thread<V>(column_lanes, edge_lanes);
  const bool here = place.group < rows && place.column < step.batch;
  Lanes<V> sum = no_lanes<V>();
  if (here)
    sum = sum_of_parts<V>(
        sums, step.batch, place.column, part_ptr[place.group] + place.team, part_ptr[place.group + 1], edge_lanes);
  sum_teams<V>(sum, column_lanes, edge_lanes);
  if (here && place.team == 0) finish_row<V>(step, long_rows[place.group], place.column, sum);
}

#define EDGES const Long *indptr, const Long *exact_before, const int *columns, const Byte *codes, const float *exact, \
    const float *book
#define STEP const float *y, const float *r, const float *scale, float *out, float omega, int scaled, Long batch
#define AS_EDGES Edges{indptr, exact_before, columns, codes, exact, book}
#define AS_STEP Step{y, r, scale, out, omega, scaled, batch}

extern "C" __global__ void __launch_bounds__(256)
    step_rows_1(EDGES, STEP, Long nodes, Long longest, int column_lanes, int edge_lanes) {
  step_rows<1>(AS_EDGES, AS_STEP, nodes, longest, column_lanes, edge_lanes);
}

extern "C" __global__ void __launch_bounds__(256)
    step_rows_4(EDGES, STEP, Long nodes, Long longest, int column_lanes, int edge_lanes) {
  step_rows<4>(AS_EDGES, AS_STEP, nodes, longest, column_lanes, edge_lanes);
}

extern "C" __global__ void __launch_bounds__(256) step_parts_1(
    EDGES, const float* y, Long batch, const Long* part_row, const Long* part_first, const Long* part_last, Long parts,
    float* sums, int column_lanes, int edge_lanes) {
  step_parts<1>(AS_EDGES, y, batch, part_row, part_first, part_last, parts, sums, column_lanes, edge_lanes);
}

extern "C" __global__ void __launch_bounds__(256) step_parts_4(
    EDGES, const float* y, Long batch, const Long* part_row, const Long* part_first, const Long* part_last, Long parts,
    float* sums, int column_lanes, int edge_lanes) {
  step_parts<4>(AS_EDGES, y, batch, part_row, part_first, part_last, parts, sums, column_lanes, edge_lanes);
}

extern "C" __global__ void __launch_bounds__(256) step_long_1(
    STEP, const Long* long_rows, const Long* part_ptr, Long rows, const float* sums, int column_lanes,
    int edge_lanes) {
  step_long<1>(AS_STEP, long_rows, part_ptr, rows, sums, column_lanes, edge_lanes);
}

extern "C" __global__ void __launch_bounds__(256) step_long_4(
    STEP, const Long* long_rows, const Long* part_ptr, Long rows, const float* sums, int column_lanes,
    int edge_lanes) {
  step_long<4>(AS_STEP, long_rows, part_ptr, rows, sums, column_lanes, edge_lanes);
}

// left (rows, B) float64 of the rows from `start` on: their part of the residual.
extern "C" __global__ void __launch_bounds__(256) residual_rows(
    EDGES, const float* seeds, const float* x, const double* inverse_degrees, double damping, double* left,
    Long batch, Long start, Long rows, int column_lanes, int edge_lanes) {
  const Edges edges = AS_EDGES;
  const Place place = place_of_thread<1>(column_lanes, edge_lanes);
  const Long row = start + place.group, spot = row * batch + place.column;
  const bool here = place.group < rows && place.column < batch;
  double walked = 0.0;
  if (here)
    walked = walked_sum(
        edges, x, inverse_degrees, batch, row, place.column, first_edge(edges, row) + place.team,
        last_edge(edges, row), edge_lanes);
  for (int offset = column_lanes * edge_lanes / 2; offset >= column_lanes; offset /= 2)
    walked += __shfl_xor_sync(0xffffffffu, walked, offset);
  if (here && place.team == 0)
    left[place.group * batch + place.column] = left_over(damping, seeds[spot], walked, x[spot]);
}

#endif
