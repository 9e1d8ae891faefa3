// The kernels themselves, shells and all, run on the host: a block is a set of fibers that stop at every barrier and
// shuffle, and go on when all have come to the same one.
//
// A thread that misses a barrier the others wait at, a shuffle without its whole warp, and a phase that counts on a
// barrier which is not there show here; so does an argument of another size than its parameter's.
#define __CUDACC__
#define __CUDA_ARCH__ 900
#define __host__
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static

#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

struct Dim {
  unsigned x, y, z;
};

static Dim threadIdx, blockIdx, blockDim, gridDim;

namespace {

enum Stop { RUNNING, BARRIER, SHUFFLE, DONE };

struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  Stop stop;
};

const int WARP = 32;
std::vector<Fiber> fibers;
std::vector<double> exchanged;
ucontext_t scheduler;
std::function<void()> body;
int current;
bool backwards;

void run_body() {
  body();
  fibers[current].stop = DONE;
  swapcontext(&fibers[current].context, &scheduler);
}

void stop_at(Stop stop) {
  const int here = current;
  fibers[here].stop = stop;
  swapcontext(&fibers[here].context, &scheduler);
}

void fail(const char* words) {
  std::fprintf(stderr, "block (%u, %u): %s\n", blockIdx.x, blockIdx.y, words);
  std::abort();
}

// All fibers go on to their next stop, which must be of one kind for all that have not ended.
bool advance() {
  const int threads = fibers.size();
  bool stops[4] = {};
  for (int turn = 0; turn < threads; ++turn) {
    current = backwards ? threads - 1 - turn : turn;
    if (fibers[current].stop == DONE) continue;
    threadIdx.x = current;
    swapcontext(&scheduler, &fibers[current].context);
    stops[fibers[current].stop] = true;
  }
  if (stops[BARRIER] && (stops[SHUFFLE] || stops[DONE])) fail("some threads wait at a barrier that others miss");
  if (stops[SHUFFLE] && stops[DONE]) fail("some threads shuffle when others have ended");
  return stops[BARRIER] || stops[SHUFFLE];
}

void run_block(int threads) {
  fibers.resize(threads);
  exchanged.assign(threads, 0.0);
  for (Fiber& fiber : fibers) {
    fiber.stack.resize(1 << 16);
    fiber.stop = RUNNING;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, run_body, 0);
  }
  while (advance()) {
  }
}

} // namespace

static void __syncthreads() { stop_at(BARRIER); }

template <class T> static T __shfl_xor_sync(unsigned mask, T value, int offset) {
  const int here = current;
  if (mask != 0xffffffffu) fail("a shuffle without its whole warp");
  exchanged[here] = value;
  stop_at(SHUFFLE);
  const T other = exchanged[here / WARP * WARP + (here % WARP ^ offset)];
  stop_at(SHUFFLE);
  return other;
}

template <class T> static T atomicAdd(T* to, T amount) {
  const T old = *to;
  *to = old + amount;
  return old;
}

template <class T> static void atomicMax(T* to, T value) { *to = value > *to ? value : *to; }

template <class T> static void atomicMin(T* to, T value) { *to = value < *to ? value : *to; }

#include "push.cu"
#undef EDGES
#include "step.cu"
#include "topk.cu"

namespace {

// A kernel with its arguments behind pointers, as the driver is given them: each is read in its parameter's size.
template <class... A, std::size_t... I>
void call(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
  kernel(*(A*)arguments[I]...);
}

typedef std::function<void(void**)> Launch;

template <class... A> Launch launch_of(void (*kernel)(A...)) {
  return [kernel](void** arguments) { call(kernel, arguments, std::index_sequence_for<A...>()); };
}

const std::map<std::string, Launch> KERNELS = {
    {"step_rows_1", launch_of(step_rows_1)},     {"step_rows_4", launch_of(step_rows_4)},
    {"step_parts_1", launch_of(step_parts_1)},   {"step_parts_4", launch_of(step_parts_4)},
    {"step_long_1", launch_of(step_long_1)},     {"step_long_4", launch_of(step_long_4)},
    {"residual_rows", launch_of(residual_rows)}, {"topk_rows", launch_of(topk_rows)},
    {"push_scan", launch_of(push_scan)},         {"push_rounds", launch_of(push_rounds)},
    {"push_reached", launch_of(push_reached)},
};

} // namespace

extern "C" int launch(const char* name, Long grid_x, Long grid_y, Long threads, void** arguments, int reversed) {
  const auto found = KERNELS.find(name);
  if (found == KERNELS.end()) return 1;
  backwards = reversed;
  gridDim = Dim{(unsigned)grid_x, (unsigned)grid_y, 1};
  blockDim = Dim{(unsigned)threads, 1, 1};
  body = [&] { found->second(arguments); };
  for (unsigned y = 0; y < grid_y; ++y)
    for (unsigned x = 0; x < grid_x; ++x) {
      blockIdx = Dim{x, y, 0};
      run_block(threads);
    }
  return 0;
}
