// Forward push of sparse seeds, a block a question: rounds in which every node that keeps more than epsilon · degree
// moves all of it, 1 − d of it into its mass and d of it on to its neighbours.
//
// What a node keeps is a whole number of units (2⁻⁶⁰ of the question's seeds or less), so that additions by many threads
// give the same sum in any order, and a result is the same on every run. Every addition is rounded down: what is lost is
// less than a unit an edge, which the caller adds to the bounds.
#include "common.cuh"

// Threads of a block, and nodes whose edges are spread at a time.
#define TILE 512
// Products in float64 are off by a few parts in 2⁵³; this keeps them from exceeding the truth.
#define ROUNDED_DOWN 0.9999999999999991
#define MOST_UNITS 9.0e18

struct Walker {
  Count* left;      // (n) units a node keeps
  double* mass;     // (P) of the passages, in the units of the seeds
  int* frontier;    // (n) nodes above the threshold
  int* next;        // (n) those of the next round
  Count* moved;     // (n) what the frontier's nodes move, by place in the frontier
  double unit;
  double damping;
  double epsilon;
  Long passages;
};

// A tile of the frontier with its edges laid end to end: node i has the edges ends[i−1] … ends[i].
struct Tile {
  Long ends[2][TILE];
  Long first[TILE];
  Long exact_before[TILE];
  Long exact_from[TILE];
  double rate[TILE]; // units that an edge of weight 1 carries
};

SHARED_CODE Count threshold(const Walker& walker, const double* degrees, Long node) {
  const double units = walker.epsilon * degrees[node] / walker.unit;
  return (Count)(units < MOST_UNITS ? units : MOST_UNITS);
}

SHARED_CODE void find_active(
    const Walker& walker, const double* degrees, Long nodes, int* size, Long lane, Long lanes) {
  for (Long node = lane; node < nodes; node += lanes)
    if (walker.left[node] > threshold(walker, degrees, node)) walker.frontier[add_whole(size, 1)] = (int)node;
}

// All of the frontier is taken before any of it is spread, so the rounds do not depend on the order of the threads.
SHARED_CODE void take_left(const Walker& walker, const int* frontier, int size, int lane, int lanes) {
  for (int place = lane; place < size; place += lanes) {
    const Long node = frontier[place];
    const Count units = walker.left[node];
    walker.left[node] = 0;
    walker.moved[place] = units;
    if (node < walker.passages) walker.mass[node] += (1.0 - walker.damping) * ((double)units * walker.unit);
  }
}

SHARED_CODE void lay_out(
    const Edges& edges, const Walker& walker, const double* degrees, const int* frontier, int start, int size,
    Tile& tile, int lane) {
  const int place = start + lane;
  tile.ends[0][lane] = 0;
  if (place >= size) return;
  const Long node = frontier[place];
  tile.first[lane] = first_edge(edges, node);
  tile.exact_before[lane] = edges.exact_before[node];
  tile.exact_from[lane] = exact_edge(edges, node);
  tile.ends[0][lane] = last_edge(edges, node) - tile.first[lane];
  tile.rate[lane] =
      degrees[node] > 0.0 ? walker.damping * (double)walker.moved[place] / degrees[node] * ROUNDED_DOWN : 0.0;
}

// One pass of a running sum over the tile, from one buffer to the other.
SHARED_CODE void add_from(Tile& tile, int from, int distance, int lane) {
  const Long own = tile.ends[from][lane];
  tile.ends[1 - from][lane] = lane >= distance ? own + tile.ends[from][lane - distance] : own;
}

SHARED_CODE int owner_of(const Long* ends, Long edge) {
  int low = 0, high = TILE - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (ends[middle] > edge)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

SHARED_CODE void spread(
    const Edges& edges, const Walker& walker, const double* degrees, const Tile& tile, int buffer, int* next_size,
    int lane, int lanes) {
  const Long* ends = tile.ends[buffer];
  for (Long number = lane; number < ends[TILE - 1]; number += lanes) {
    const int owner = owner_of(ends, number);
    const Long edge = tile.first[owner] + (owner ? number - ends[owner - 1] : number);
    const float weight = edge_weight(edges, edge, tile.exact_before[owner], tile.exact_from[owner]);
    const Count units = (Count)(tile.rate[owner] * (double)weight);
    if (units == 0) continue;
    const Long node = edges.columns[edge];
    const Count old = add_whole(&walker.left[node], units), limit = threshold(walker, degrees, node);
    // Only one addition of a round takes the node over its threshold, so it is listed once.
    if (old <= limit && old + units > limit) walker.next[add_whole(next_size, 1)] = (int)node;
  }
}

// left ÷ degree, greatest over the lane's nodes. A positive float64 has the order of its bits.
SHARED_CODE Count reached_bits(
    const Count* left, const double* degrees, double unit, Long nodes, Long lane, Long lanes) {
  union {
    double number;
    Count bits;
  } as;
  as.number = 0.0;
  for (Long node = lane; node < nodes; node += lanes) {
    if (!(degrees[node] > 0.0) || left[node] == 0) continue;
    const double share = (double)left[node] * unit / degrees[node];
    as.number = share > as.number ? share : as.number;
  }
  return as.bits;
}

#ifdef __CUDACC__

#define EDGES const Long *indptr, const Long *exact_before, const int *columns, const Byte *codes, const float *exact, \
    const float *book
// Arrays of all questions, a row each; `questions` lists the rows that are worked on.
#define WALKERS Count *left, double *mass, int *frontier, int *next, Count *moved, const double *units, \
    double damping, double epsilon, Long nodes, Long passages
#define AS_WALKER(row) Walker{left + (row) * nodes, mass + (row) * passages, frontier + (row) * nodes, \
    next + (row) * nodes, moved + (row) * nodes, units[row], damping, epsilon, passages}

// The nodes above the threshold into the frontier, their number into sizes. Grid (questions, blocks).
extern "C" __global__ void __launch_bounds__(256)
    push_scan(WALKERS, const double* degrees, const int* questions, int* sizes) {
  const Long row = questions[blockIdx.x];
  const Walker walker = AS_WALKER(row);
  const Long lane = (Long)blockIdx.y * blockDim.x + threadIdx.x, lanes = (Long)gridDim.y * blockDim.x;
  find_active(walker, degrees, nodes, sizes + row, lane, lanes);
}

// Rounds until no node is above the threshold; edges counts those touched. Grid (questions), blocks of TILE threads.
extern "C" __global__ void __launch_bounds__(TILE) push_rounds(
    EDGES, WALKERS, const double* degrees, const int* questions, const int* sizes, Long* touched) {
  __shared__ Tile tile;
  __shared__ int next_size;
  const Edges edges = Edges{indptr, exact_before, columns, codes, exact, book};
  const Long row = questions[blockIdx.x];
  Walker walker = AS_WALKER(row);
  const int lane = threadIdx.x;
  int size = sizes[row];
  Long count = 0;
  while (size > 0) {
    // A place is laid out by the thread that took it, so no barrier stands between; the one before the spread is for all.
    take_left(walker, walker.frontier, size, lane, TILE);
    if (lane == 0) next_size = 0;
    for (int start = 0; start < size; start += TILE) {
      lay_out(edges, walker, degrees, walker.frontier, start, size, tile, lane);
      __syncthreads();
      int buffer = 0;
      for (int distance = 1; distance < TILE; distance *= 2, buffer = 1 - buffer) {
        add_from(tile, buffer, distance, lane);
        __syncthreads();
      }
      spread(edges, walker, degrees, tile, buffer, &next_size, lane, TILE);
      count += tile.ends[buffer][TILE - 1];
      __syncthreads();
    }
    size = next_size;
    int* const spare = walker.frontier;
    walker.frontier = walker.next;
    walker.next = spare;
    __syncthreads();
  }
  if (lane == 0) touched[row] += count;
}

// The greatest residual ÷ degree of each question, as the bits of a float64. Grid (questions, blocks).
extern "C" __global__ void __launch_bounds__(256) push_reached(
    const Count* left, const double* units, Long nodes, const double* degrees, const int* questions, Count* reached) {
  const Long row = questions[blockIdx.x];
  const Long lane = (Long)blockIdx.y * blockDim.x + threadIdx.x, lanes = (Long)gridDim.y * blockDim.x;
  const Count bits = reached_bits(left + row * nodes, degrees, units[row], nodes, lane, lanes);
  if (bits) keep_greatest(&reached[row], bits);
}

#endif
