// The kernels' arithmetic compiled for the host: every entry under its own name, called with its grid in front.
//
// The functions of (row, lane) are those of the device; what a shell does there (where a thread stands, barriers between
// phases, sums over teams) is done here by loops over blocks and lanes.
#include "push.cu"
#include "step.cu"
#include "topk.cu"

namespace {

const int THREADS = 256;

// Calls body(group, team, column) for every thread of a grid of `step.cu`, one column lane after another.
template <int V, class Body> void for_groups(Long groups, Long batch, int edge_lanes, Body body) {
  for (Long group = 0; group < groups; ++group)
    for (Long column = 0; column < batch; column += V) body(group, column, edge_lanes);
}

// The teams' sums, added as the shuffles add them: halves first.
template <int V, class Sum> Lanes<V> sum_of_teams(int edge_lanes, Sum sum) {
  Lanes<V> teams[32];
  for (int team = 0; team < edge_lanes; ++team) teams[team] = sum(team);
  for (int offset = edge_lanes / 2; offset > 0; offset /= 2)
    for (int team = 0; team < offset; ++team)
      for (int v = 0; v < V; ++v) teams[team].value[v] += teams[team + offset].value[v];
  return teams[0];
}

template <int V> void rows(const Edges& edges, const Step& step, Long nodes, Long longest, int edge_lanes) {
  for_groups<V>(nodes, step.batch, edge_lanes, [&](Long row, Long column, int lanes) {
    const Long first = first_edge(edges, row), last = last_edge(edges, row);
    if (last - first > longest) return;
    const Lanes<V> sum = sum_of_teams<V>(lanes, [&](int team) {
      return weighed_sum<V>(edges, step.y, step.batch, row, column, first + team, last, lanes);
    });
    finish_row<V>(step, row, column, sum);
  });
}

template <int V>
void parts_of_rows(
    const Edges& edges, const float* y, Long batch, const Long* part_row, const Long* part_first, const Long* part_last,
    Long parts, float* sums, int edge_lanes) {
  for_groups<V>(parts, batch, edge_lanes, [&](Long part, Long column, int lanes) {
    const Lanes<V> sum = sum_of_teams<V>(lanes, [&](int team) {
      return weighed_sum<V>(
          edges, y, batch, part_row[part], column, part_first[part] + team, part_last[part], lanes);
    });
    store_lanes<V>(sums + part * batch + column, sum);
  });
}

template <int V>
void long_rows_of(
    const Step& step, const Long* long_rows, const Long* part_ptr, Long rows, const float* sums, int edge_lanes) {
  for_groups<V>(rows, step.batch, edge_lanes, [&](Long row, Long column, int lanes) {
    const Lanes<V> sum = sum_of_teams<V>(lanes, [&](int team) {
      return sum_of_parts<V>(sums, step.batch, column, part_ptr[row] + team, part_ptr[row + 1], lanes);
    });
    finish_row<V>(step, long_rows[row], column, sum);
  });
}

void best_of_row(
    Selection& selection, const float* scores, const int* named, int start, int count, int k, float* best, int* ids,
    float* low, float* high, int lanes) {
  begin_selection(selection, k, count);
  for (int lane = 0; lane < lanes; ++lane) find_extremes(selection, scores, count, lane, lanes);
  for (int number = 0; !selection.found; ++number) {
    for (int lane = 0; lane < lanes; ++lane) clear_bins(selection, lane, lanes);
    for (int lane = 0; lane < lanes; ++lane) count_digits(selection, scores, count, number, lane, lanes);
    for (int lane = 0; lane < lanes; ++lane) sum_bins(selection, lane);
    choose_digit(selection, number);
  }
  for (int lane = 0; lane < lanes; ++lane) collect_keys(selection, scores, count, lane, lanes);
  const int size = power_of_two(k);
  for (int lane = 0; lane < lanes; ++lane) pad_keys(selection, size, lane, lanes);
  for (int run = 2; run <= size; run *= 2)
    for (int distance = run / 2; distance > 0; distance /= 2)
      for (int lane = 0; lane < lanes; ++lane) sort_pass(selection, size, run, distance, lane, lanes);
  for (int lane = 0; lane < lanes; ++lane) write_best(selection, named, start, k, best, ids, lane, lanes);
  *low = score_of(selection.low);
  *high = score_of(selection.high);
}

void spread_frontier(
    const Edges& edges, const Walker& walker, const double* degrees, int size, Tile& tile, int* next_size,
    Long* count) {
  for (int start = 0; start < size; start += TILE) {
    for (int lane = 0; lane < TILE; ++lane)
      lay_out(edges, walker, degrees, walker.frontier, start, size, tile, lane);
    int buffer = 0;
    for (int distance = 1; distance < TILE; distance *= 2, buffer = 1 - buffer)
      for (int lane = 0; lane < TILE; ++lane) add_from(tile, buffer, distance, lane);
    for (int lane = 0; lane < TILE; ++lane)
      spread(edges, walker, degrees, tile, buffer, next_size, lane, TILE);
    *count += tile.ends[buffer][TILE - 1];
  }
}

Long rounds(const Edges& edges, Walker walker, const double* degrees, int size) {
  static Tile tile;
  Long count = 0;
  while (size > 0) {
    for (int lane = 0; lane < TILE; ++lane) take_left(walker, walker.frontier, size, lane, TILE);
    int next_size = 0;
    spread_frontier(edges, walker, degrees, size, tile, &next_size, &count);
    size = next_size;
    int* const spare = walker.frontier;
    walker.frontier = walker.next;
    walker.next = spare;
  }
  return count;
}

} // namespace

#define EDGES const Long *indptr, const Long *exact_before, const int *columns, const Byte *codes, const float *exact, \
    const float *book
#define STEP const float *y, const float *r, const float *scale, float *out, float omega, Long scaled, Long batch
#define AS_EDGES Edges{indptr, exact_before, columns, codes, exact, book}
#define AS_STEP Step{y, r, scale, out, omega, (int)scaled, batch}
#define WALKERS Count *left, double *mass, int *frontier, int *next, Count *moved, const double *units, \
    double damping, double epsilon, Long nodes, Long passages
#define AS_WALKER(row) Walker{left + (row) * nodes, mass + (row) * passages, frontier + (row) * nodes, \
    next + (row) * nodes, moved + (row) * nodes, units[row], damping, epsilon, passages}
#define GRID Long grid_x, Long grid_y

extern "C" {

void step_rows_1(GRID, EDGES, STEP, Long nodes, Long longest, Long, Long edge_lanes) {
  rows<1>(AS_EDGES, AS_STEP, nodes, longest, edge_lanes);
}

void step_rows_4(GRID, EDGES, STEP, Long nodes, Long longest, Long, Long edge_lanes) {
  rows<4>(AS_EDGES, AS_STEP, nodes, longest, edge_lanes);
}

void step_parts_1(
    GRID, EDGES, const float* y, Long batch, const Long* part_row, const Long* part_first, const Long* part_last,
    Long parts, float* sums, Long, Long edge_lanes) {
  parts_of_rows<1>(AS_EDGES, y, batch, part_row, part_first, part_last, parts, sums, edge_lanes);
}

void step_parts_4(
    GRID, EDGES, const float* y, Long batch, const Long* part_row, const Long* part_first, const Long* part_last,
    Long parts, float* sums, Long, Long edge_lanes) {
  parts_of_rows<4>(AS_EDGES, y, batch, part_row, part_first, part_last, parts, sums, edge_lanes);
}

void step_long_1(
    GRID, STEP, const Long* long_rows, const Long* part_ptr, Long rows, const float* sums, Long, Long edge_lanes) {
  long_rows_of<1>(AS_STEP, long_rows, part_ptr, rows, sums, edge_lanes);
}

void step_long_4(
    GRID, STEP, const Long* long_rows, const Long* part_ptr, Long rows, const float* sums, Long, Long edge_lanes) {
  long_rows_of<4>(AS_STEP, long_rows, part_ptr, rows, sums, edge_lanes);
}

void residual_rows(
    GRID, EDGES, const float* seeds, const float* x, const double* inverse_degrees, double damping, double* left,
    Long batch, Long start, Long rows, Long, Long edge_lanes) {
  const Edges edges = AS_EDGES;
  for_groups<1>(rows, batch, edge_lanes, [&](Long group, Long column, int lanes) {
    const Long row = start + group, spot = row * batch + column;
    double walked = 0.0;
    for (int team = 0; team < lanes; ++team)
      walked += walked_sum(
          edges, x, inverse_degrees, batch, row, column, first_edge(edges, row) + team, last_edge(edges, row), lanes);
    left[group * batch + column] = left_over(damping, seeds[spot], walked, x[spot]);
  });
}

void topk_rows(
    GRID, const float* scores, const int* numbers, Long numbered, Long columns, Long chunk, Long k, float* best,
    int* ids, float* low, float* high) {
  static Selection selection;
  for (Long row = 0; row < grid_x; ++row)
    for (Long block = 0; block < grid_y; ++block) {
      const Long start = block * chunk, spot = row * grid_y + block;
      const int count = columns - start < chunk ? columns - start : chunk;
      best_of_row(
          selection, scores + row * columns + start, numbered ? numbers + row * columns + start : 0, start, count, k,
          best + spot * k, ids + spot * k, low + spot, high + spot, 512);
    }
}

void push_scan(GRID, WALKERS, const double* degrees, const int* questions, int* sizes) {
  for (Long block = 0; block < grid_x; ++block) {
    const Long row = questions[block], lanes = grid_y * THREADS;
    const Walker walker = AS_WALKER(row);
    for (Long lane = 0; lane < lanes; ++lane) find_active(walker, degrees, nodes, sizes + row, lane, lanes);
  }
}

void push_rounds(
    GRID, EDGES, WALKERS, const double* degrees, const int* questions, const int* sizes, Long* touched) {
  const Edges edges = AS_EDGES;
  for (Long block = 0; block < grid_x; ++block) {
    const Long row = questions[block];
    touched[row] += rounds(edges, AS_WALKER(row), degrees, sizes[row]);
  }
}

void push_reached(
    GRID, const Count* left, const double* units, Long nodes, const double* degrees, const int* questions,
    Count* reached) {
  for (Long block = 0; block < grid_x; ++block) {
    const Long row = questions[block], lanes = grid_y * THREADS;
    for (Long lane = 0; lane < lanes; ++lane)
      keep_greatest(&reached[row], reached_bits(left + row * nodes, degrees, units[row], nodes, lane, lanes));
  }
}

float order_round_trip(float score) { return score_of(order_of(score)); }

} // extern "C"
