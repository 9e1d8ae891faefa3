// The k greatest scores of each row, descending, ties by lower number, with the row's least and greatest score; k ≤ 2048.
//
// A score and its place make one 64-bit key that no other place shares, greater for a greater score and, among equal
// scores, for a lower place. The k-th greatest key is found digit by digit (11 bits) from counts, the keys from it on are
// collected and sorted in shared memory. Rows are cut into chunks, a block each; a second launch over the chunks' best
// gives the row's. Both launches are the same kernel. A block goes through the phases below with a barrier between two.
#include "common.cuh"

#define MOST_CHOSEN 2048
#define DIGIT_BITS 11
#define BINS 2048
#define BIN_GROUPS 32

struct Selection {
  Count chosen[MOST_CHOSEN];
  Word bins[BINS];
  Word group_sums[BIN_GROUPS];
  Count prefix;   // digits of the k-th key found so far, from the top
  Word remaining; // keys still to be found among those with these digits
  int shift;      // where the next digit stands
  int found;      // whether all keys with these digits are taken
  int filled;
  Word low;
  Word high;
};

// Unsigned order of the results is the order of the floats; −0 equals 0; NaN lies beyond the infinities.
SHARED_CODE Word order_of(float score) {
  union {
    float number;
    Word bits;
  } as;
  as.number = score == 0.0f ? 0.0f : score;
  return as.bits & 0x80000000u ? ~as.bits : as.bits | 0x80000000u;
}

SHARED_CODE float score_of(Word order) {
  union {
    float number;
    Word bits;
  } as;
  as.bits = order & 0x80000000u ? order & 0x7fffffffu : ~order;
  return as.number;
}

SHARED_CODE Count key_of(float score, Word place) { return ((Count)order_of(score) << 32) | (0xffffffffu - place); }

SHARED_CODE Word place_of(Count key) { return 0xffffffffu - (Word)key; }

SHARED_CODE int digit_shift(int number) {
  const int shift = 64 - DIGIT_BITS * (number + 1);
  return shift > 0 ? shift : 0;
}

SHARED_CODE void begin_selection(Selection& selection, Word wanted, Word scores) {
  selection.prefix = 0;
  selection.remaining = wanted < scores ? wanted : scores;
  selection.shift = digit_shift(0);
  selection.found = selection.remaining == 0;
  selection.filled = 0;
  selection.low = 0xffffffffu;
  selection.high = 0;
}

SHARED_CODE void clear_bins(Selection& selection, int lane, int lanes) {
  for (int bin = lane; bin < BINS; bin += lanes) selection.bins[bin] = 0;
}

SHARED_CODE void find_extremes(Selection& selection, const float* scores, Word count, int lane, int lanes) {
  Word low = 0xffffffffu, high = 0;
  for (Word place = lane; place < count; place += lanes) {
    const Word order = order_of(scores[place]);
    low = order < low ? order : low;
    high = order > high ? order : high;
  }
  keep_least(&selection.low, low);
  keep_greatest(&selection.high, high);
}

// Keys are counted by their next digit, if the digits before it are those of the k-th.
SHARED_CODE void count_digits(Selection& selection, const float* scores, Word count, int number, int lane, int lanes) {
  const int shift = digit_shift(number), before = number ? digit_shift(number - 1) : 64;
  for (Word place = lane; place < count; place += lanes) {
    const Count key = key_of(scores[place], place);
    if (number && (key >> before) != (selection.prefix >> before)) continue;
    const Word digit = (Word)((key >> shift) & (((Count)1 << (before - shift)) - 1));
    add_whole((int*)&selection.bins[digit], 1);
  }
}

// The bins of a group are read in an order in which 32 lanes never meet in a memory bank.
SHARED_CODE void sum_bins(Selection& selection, int lane) {
  const int width = BINS / BIN_GROUPS;
  if (lane >= BIN_GROUPS) return;
  Word sum = 0;
  for (int i = 0; i < width; ++i) sum += selection.bins[lane * width + ((i + lane) & (width - 1))];
  selection.group_sums[lane] = sum;
}

// The digit of the k-th key: the greatest at which the keys from it on are enough.
SHARED_CODE void choose_digit(Selection& selection, int number) {
  const int width = BINS / BIN_GROUPS;
  int group = BIN_GROUPS - 1;
  while (selection.group_sums[group] < selection.remaining) selection.remaining -= selection.group_sums[group--];
  int bin = group * width + width - 1;
  while (selection.bins[bin] < selection.remaining) selection.remaining -= selection.bins[bin--];
  selection.shift = digit_shift(number);
  selection.prefix |= (Count)bin << selection.shift;
  selection.found = selection.bins[bin] == selection.remaining;
}

SHARED_CODE void collect_keys(Selection& selection, const float* scores, Word count, int lane, int lanes) {
  for (Word place = lane; place < count; place += lanes) {
    const Count key = key_of(scores[place], place);
    if ((key >> selection.shift) >= (selection.prefix >> selection.shift))
      selection.chosen[add_whole(&selection.filled, 1)] = key;
  }
}

SHARED_CODE void pad_keys(Selection& selection, int size, int lane, int lanes) {
  for (int slot = selection.filled + lane; slot < size; slot += lanes) selection.chosen[slot] = 0;
}

// One pass of a bitonic sort into descending order; size is a power of two.
SHARED_CODE void sort_pass(Selection& selection, int size, int run, int distance, int lane, int lanes) {
  for (int slot = lane; slot < size; slot += lanes) {
    const int other = slot ^ distance;
    if (other <= slot) continue;
    const Count here = selection.chosen[slot], there = selection.chosen[other];
    const bool descending = (slot & run) == 0;
    if ((here < there) == descending) {
      selection.chosen[slot] = there;
      selection.chosen[other] = here;
    }
  }
}

// Slots beyond the scores there are get the number −1, and a score below every other.
SHARED_CODE void write_best(
    const Selection& selection, const int* numbers, int start, int wanted, float* best, int* ids, int lane, int lanes) {
  for (int slot = lane; slot < wanted; slot += lanes) {
    const Count key = selection.chosen[slot];
    best[slot] = score_of((Word)(key >> 32));
    if (key == 0)
      ids[slot] = -1;
    else
      ids[slot] = numbers ? numbers[place_of(key)] : start + (int)place_of(key);
  }
}

SHARED_CODE int power_of_two(int at_least) {
  int size = 1;
  while (size < at_least) size *= 2;
  return size;
}

#ifdef __CUDACC__

// scores (B, columns) float32 in chunks; numbers (B, columns) int32 if numbered, else a score's number is its place.
// best, ids (B, chunks, k); low, high (B, chunks). Grid (B, chunks).
extern "C" __global__ void __launch_bounds__(512, 2) topk_rows(
    const float* scores, const int* numbers, int numbered, int columns, int chunk, int k, float* best, int* ids,
    float* low, float* high) {
  __shared__ Selection selection;
  const int lane = threadIdx.x, lanes = blockDim.x, start = blockIdx.y * chunk;
  const int count = columns - start < chunk ? columns - start : chunk;
  const Long row = blockIdx.x, spot = row * gridDim.y + blockIdx.y;
  const float* here = scores + row * columns + start;
  if (lane == 0) begin_selection(selection, k, count);
  __syncthreads();
  find_extremes(selection, here, count, lane, lanes);
  for (int number = 0; !selection.found; ++number) {
    clear_bins(selection, lane, lanes);
    __syncthreads();
    count_digits(selection, here, count, number, lane, lanes);
    __syncthreads();
    sum_bins(selection, lane);
    __syncthreads();
    if (lane == 0) choose_digit(selection, number);
    __syncthreads();
  }
  collect_keys(selection, here, count, lane, lanes);
  __syncthreads();
  const int size = power_of_two(k);
  pad_keys(selection, size, lane, lanes);
  __syncthreads();
  for (int run = 2; run <= size; run *= 2)
    for (int distance = run / 2; distance > 0; distance /= 2) {
      sort_pass(selection, size, run, distance, lane, lanes);
      __syncthreads();
    }
  const int* named = numbered ? numbers + row * columns + start : 0;
  write_best(selection, named, start, k, best + spot * k, ids + spot * k, lane, lanes);
  if (lane == 0) {
    low[spot] = score_of(selection.low);
    high[spot] = score_of(selection.high);
  }
}

#endif
