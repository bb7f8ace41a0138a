/* What the CUDA baselines share: arrays on the device, noise, timing, the choice of a launch, the command line and the answer.
 *
 * Usage: program NX NY NZ f32|f64 [--seconds S] [--rounds N] [--media] [--check]
 *   measures and prints one line of JSON: rates in 1e9 cell-steps per second as [min, median, max], rates of plain copies, and what
 *   launch was chosen. With --check it instead advances the grid some steps with every launch and prints how far the results are from
 *   a reference in double precision on the CPU.
 *
 * An array has rows along z of whole 128 bytes and HALO rows and planes of zeros around. Values next to a row's ends are
 * not read, so rows need no zeros of their own. */
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) {                                                                                    \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* 16 bytes, which a thread reads and writes at once. */
template <class T> struct alignas(16) Pack {
    static constexpr int N = 16 / sizeof(T);
    T v[N];
};

/* Reads what nothing writes during the kernel and neighbours read as well. */
__device__ inline Pack<float> shared_pack(const float *p)
{
    float4 a = __ldg(reinterpret_cast<const float4 *>(p));
    return {{a.x, a.y, a.z, a.w}};
}
__device__ inline Pack<double> shared_pack(const double *p)
{
    double2 a = __ldg(reinterpret_cast<const double2 *>(p));
    return {{a.x, a.y}};
}

/* Reads what nobody else reads. */
__device__ inline Pack<float> own_pack(const float *p)
{
    float4 a = __ldcs(reinterpret_cast<const float4 *>(p));
    return {{a.x, a.y, a.z, a.w}};
}
__device__ inline Pack<double> own_pack(const double *p)
{
    double2 a = __ldcs(reinterpret_cast<const double2 *>(p));
    return {{a.x, a.y}};
}
__device__ inline void store_pack(float *p, Pack<float> a)
{
    __stcs(reinterpret_cast<float4 *>(p), make_float4(a.v[0], a.v[1], a.v[2], a.v[3]));
}
__device__ inline void store_pack(double *p, Pack<double> a)
{
    __stcs(reinterpret_cast<double2 *>(p), make_double2(a.v[0], a.v[1]));
}

/* Differences of order 4 in space.
 *
 * c1 (c - b) + c2 (d - a), lane by lane, added or subtracted. */
template <class T> __device__ inline void along(Pack<T> &sum, T c1, T c2, Pack<T> a, Pack<T> b, Pack<T> c, Pack<T> d)
{
#pragma unroll
    for (int l = 0; l < Pack<T>::N; l++)
        sum.v[l] += c1 * (c.v[l] - b.v[l]) + c2 * (d.v[l] - a.v[l]);
}

/* The same along z. UP: for targets half a cell above. */
template <bool UP, class T>
__device__ inline void along_z(Pack<T> &sum, T c1, T c2, const T *p, Pack<T> own, bool first, bool last)
{
    constexpr int N = Pack<T>::N, BELOW = UP ? 1 : 2, ABOVE = UP ? 2 : 1;
    T w[N + 3];
#pragma unroll
    for (int l = 0; l < BELOW; l++)
        w[l] = first ? T(0) : __ldg(p + l - BELOW);
#pragma unroll
    for (int l = 0; l < N; l++)
        w[BELOW + l] = own.v[l];
#pragma unroll
    for (int l = 0; l < ABOVE; l++)
        w[BELOW + N + l] = last ? T(0) : __ldg(p + N + l);
#pragma unroll
    for (int l = 0; l < N; l++)
        sum.v[l] += c1 * (w[l + 2] - w[l + 1]) + c2 * (w[l + 3] - w[l]);
}

/* Cells, and the shape of an array. Strides are in elements. */
struct Grid {
    int nx, ny, nz;
    int packs; /* of a row */
    int march; /* planes that a thread advances */
    long sy, sx;

    __host__ __device__ long at(long i, long j, long k) const { return i * sx + j * sy + k; }
};

template <class T> Grid grid_of(int nx, int ny, int nz, int halo)
{
    Grid g = {nx, ny, nz};
    int line = 128 / sizeof(T), pack = Pack<T>::N;
    g.packs = (nz + pack - 1) / pack;
    g.sy = long(nz + line - 1) / line * line;
    g.sx = (ny + 2 * halo) * g.sy;
    g.march = 16;
    return g;
}

/* Arrays in one piece of memory; each begins at another place modulo the sizes of caches and banks. */
template <class T> struct Arrays {
    T *memory = nullptr;
    std::vector<T *> origins;
    size_t elements;

    Arrays(const Grid &g, int halo, int count)
    {
        size_t apart = 37 * 128 / sizeof(T);
        elements = size_t(g.nx + 2 * halo) * g.sx;
        size_t each = (elements + apart) / 32 * 32 + 32;
        CUDA(cudaMalloc(&memory, (each * count + 64) * sizeof(T)));
        CUDA(cudaMemset(memory, 0, (each * count + 64) * sizeof(T)));
        for (int i = 0; i < count; i++)
            origins.push_back(memory + i * each + halo * (g.sx + g.sy));
    }
    Arrays(const Arrays &) = delete;
    ~Arrays() { cudaFree(memory); }
    T *operator[](int i) const { return origins[i]; }
};

/* Noise between -1/2 and 1/2, the same as that of the baselines in C. */
__host__ __device__ inline double noise(uint32_t field, uint32_t i, uint32_t j, uint32_t k)
{
    uint32_t u = i * 73856093u ^ j * 19349663u ^ k * 83492791u ^ field * 2654435761u;
    u ^= u >> 15;
    u *= 2246822519u;
    u ^= u >> 13;
    return (u & 0xffff) / 65536.0 - 0.5;
}

/* middle + width * noise */
template <class T> __global__ void fill_kernel(T *a, Grid g, uint32_t field, double middle, double width)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = blockIdx.z; i < g.nx; i += gridDim.z)
        for (int j = blockIdx.y; j < g.ny; j += gridDim.y)
            if (k < g.nz)
                a[g.at(i, j, k)] = T(middle + width * noise(field, i, j, k));
}

template <class T> void fill(T *a, const Grid &g, uint32_t field, double middle, double width)
{
    dim3 blocks((g.nz + 127) / 128, std::min(g.ny, 65535), std::min(g.nx, 64));
    fill_kernel<<<blocks, 128>>>(a, g, field, middle, width);
    CUDA(cudaGetLastError());
}

/* Milliseconds of what is started by `work`. */
struct Clock {
    cudaEvent_t begin, end;
    Clock()
    {
        CUDA(cudaEventCreate(&begin));
        CUDA(cudaEventCreate(&end));
    }
    template <class F> float time(F work)
    {
        float ms;
        CUDA(cudaEventRecord(begin));
        work();
        CUDA(cudaEventRecord(end));
        CUDA(cudaEventSynchronize(end));
        CUDA(cudaGetLastError());
        CUDA(cudaEventElapsedTime(&ms, begin, end));
        return ms;
    }
};

struct Spread {
    double least, median, most;
};

inline Spread spread(std::vector<double> v)
{
    std::sort(v.begin(), v.end());
    size_t n = v.size();
    return {v[0], (v[(n - 1) / 2] + v[n / 2]) / 2, v[n - 1]};
}

static __global__ void copy_kernel(const float4 *__restrict__ a, float4 *__restrict__ b, size_t n)
{
    size_t apart = size_t(gridDim.x) * blockDim.x;
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; i + 3 * apart < n; i += 4 * apart) {
        float4 v[4];
        for (int u = 0; u < 4; u++)
            v[u] = __ldcs(a + i + u * apart);
        for (int u = 0; u < 4; u++)
            __stcs(b + i + u * apart, v[u]);
    }
    for (; i < n; i += apart)
        b[i] = a[i];
}

/* Bytes read and written per second, in 1e9, by a kernel and by the driver. */
struct Copies {
    Spread kernel, driver;
};

inline Copies copies(int rounds)
{
    size_t free_bytes, total;
    CUDA(cudaMemGetInfo(&free_bytes, &total));
    size_t bytes = std::min<size_t>(free_bytes / 3, size_t(4) << 30) / 4096 * 4096;
    float4 *a, *b;
    CUDA(cudaMalloc(&a, bytes));
    CUDA(cudaMalloc(&b, bytes));
    CUDA(cudaMemset(a, 0x3f, bytes));
    int processors;
    CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    Clock clock;
    std::vector<double> kernel, driver;
    for (int r = 0; r <= rounds; r++) {
        float k = clock.time([&] { copy_kernel<<<processors * 8, 256>>>(a, b, bytes / 16); });
        float d = clock.time([&] { CUDA(cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice)); });
        if (r == 0)
            continue;
        kernel.push_back(2e-6 * bytes / k);
        driver.push_back(2e-6 * bytes / d);
    }
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    return {spread(kernel), spread(driver)};
}

/* How a kernel is started: its code, threads of a block along z and y, and planes that a thread advances. */
template <class K> struct Launch {
    K kernel;
    const char *name;
    int threads; /* that the code allows in a block */
    int wide, deep, march;

    dim3 blocks(const Grid &g) const
    {
        return dim3((g.packs + wide - 1) / wide, (g.ny + deep - 1) / deep, (g.nx + march - 1) / march);
    }
    dim3 block() const { return dim3(wide, deep); }
    template <class A> void start(const A &arguments, Grid g) const
    {
        g.march = march;
        kernel<<<blocks(g), block()>>>(arguments, g);
    }
    std::string text() const
    {
        return std::string(name) + " " + std::to_string(wide) + "x" + std::to_string(deep) + " march " +
               std::to_string(march);
    }
};

/* The launches of each kernel of a step. */
template <class K> using Choices = std::vector<std::vector<Launch<K>>>;

/* Every code with blocks of some shapes: rows are cut into equal parts of at most so many threads. */
template <class K> std::vector<Launch<K>> launches(const std::vector<Launch<K>> &codes, const Grid &g)
{
    std::vector<Launch<K>> all;
    for (const Launch<K> &code : codes)
        for (int most : {32, 64, 128}) {
            int parts = (g.packs + most - 1) / most;
            int wide = (g.packs + parts - 1) / parts;
            if (most > code.threads || (most > 32 && wide <= most / 2))
                continue;
            for (int march : {16, 32, 64}) {
                Launch<K> l = code;
                l.wide = wide;
                l.deep = code.threads / wide;
                l.march = march;
                if (march == 16 || march < g.nx)
                    all.push_back(l);
            }
        }
    return all;
}

/* Milliseconds after which no further launch is tried. */
static constexpr float MOST_OF_TRIALS = 3000;

/* The fastest of some launches. `start` starts one. */
template <class K, class F> Launch<K> fastest(const std::vector<Launch<K>> &all, F start)
{
    Clock clock;
    Launch<K> best = all[0];
    float least = INFINITY, spent = 0;
    for (const Launch<K> &l : all) {
        float first = clock.time([&] { start(l); });
        float ms = clock.time([&] { start(l); });
        spent += first + ms;
        ms = std::min(ms, first);
        if (ms < least) {
            least = ms;
            best = l;
        }
        if (spent > MOST_OF_TRIALS)
            break;
    }
    return best;
}

struct Options {
    int nx, ny, nz;
    bool wide; /* f64 */
    double seconds = 0.5;
    int rounds = 5;
    int order = 4;
    bool media = false, check = false;
};

inline Options options(int count, char **words)
{
    Options o = {};
    o.seconds = 0.5, o.rounds = 5, o.order = 4;
    bool good = count >= 5;
    if (good) {
        o.nx = atoi(words[1]), o.ny = atoi(words[2]), o.nz = atoi(words[3]);
        o.wide = !strcmp(words[4], "f64");
        good = o.nx > 0 && o.ny > 0 && o.nz > 0 && (o.wide || !strcmp(words[4], "f32"));
    }
    for (int i = 5; good && i < count; i++) {
        std::string word = words[i];
        if (word == "--media")
            o.media = true;
        else if (word == "--check")
            o.check = true;
        else if (word == "--seconds" && i + 1 < count)
            good = (o.seconds = atof(words[++i])) > 0;
        else if (word == "--rounds" && i + 1 < count)
            good = (o.rounds = atoi(words[++i])) > 0;
        else if (word == "--order" && i + 1 < count)
            good = (o.order = atoi(words[++i])) > 0;
        else
            good = false;
    }
    if (!good) {
        fprintf(stderr, "usage: %s NX NY NZ f32|f64 [--seconds S] [--rounds N] [--order N] [--media] [--check]\n", words[0]);
        exit(2);
    }
    return o;
}

/* Sum of squares of an array, in double precision. */
template <class T> __global__ void square_kernel(const T *a, Grid g, double *sum)
{
    double own = 0;
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = blockIdx.z; i < g.nx; i += gridDim.z)
        for (int j = blockIdx.y; j < g.ny; j += gridDim.y)
            if (k < g.nz) {
                double v = a[g.at(i, j, k)];
                own += v * v;
            }
    atomicAdd(sum, own);
}

template <class T> double squares(const T *a, const Grid &g)
{
    double *sum, value;
    CUDA(cudaMalloc(&sum, sizeof(double)));
    CUDA(cudaMemset(sum, 0, sizeof(double)));
    square_kernel<<<dim3((g.nz + 127) / 128, std::min(g.ny, 64), std::min(g.nx, 64)), 128>>>(a, g, sum);
    CUDA(cudaMemcpy(&value, sum, sizeof(double), cudaMemcpyDeviceToHost));
    CUDA(cudaFree(sum));
    return value;
}

template <class T> double squares(const Arrays<T> &a, const Grid &g, int count)
{
    double sum = 0;
    for (int f = 0; f < count; f++)
        sum += squares(a[f], g);
    return sum;
}

/* Measures a step and prints the answer. `step` starts the kernels of one, or of `together` steps. */
template <class F, class S>
void measure(const Options &o, const Grid &g, const std::string &launch, F step, S checksum, int together = 1)
{
    Clock clock;
    double cells = double(g.nx) * g.ny * g.nz * together;
    clock.time(step);
    float one = clock.time([&] {
        for (int s = 0; s < 3; s++)
            step();
    }) / 3;
    int steps = int(std::min(1e5, std::max(3.0, std::ceil(1e3 * o.seconds / one))));
    std::vector<double> rates;
    for (int r = 0; r < o.rounds; r++) {
        float ms = clock.time([&] {
            for (int s = 0; s < steps; s++)
                step();
        });
        rates.push_back(cells * steps / ms * 1e-6);
    }
    Spread s = spread(rates);
    printf("{\"gcells\": [%.4f, %.4f, %.4f], \"steps\": %d, \"launch\": \"%s\", \"checksum\": %.9e", s.least, s.median,
           s.most, steps, launch.c_str(), checksum());
}

inline void finish(const Options &o)
{
    Copies c = copies(o.rounds);
    printf(", \"copy_kernel_gb\": [%.1f, %.1f, %.1f], \"copy_driver_gb\": [%.1f, %.1f, %.1f]}\n", c.kernel.least,
           c.kernel.median, c.kernel.most, c.driver.least, c.driver.median, c.driver.most);
}

/* Steps after which results are compared. */
static constexpr int STEPS_OF_CHECK = 7;

/* Arrays on the CPU in double precision, for a reference in the plainest way. */
struct Reference {
    int nx, ny, nz;
    bool single; /* begins with values that f32 holds */
    std::vector<std::vector<double>> a;

    Reference(const Options &o, int count)
        : nx(o.nx), ny(o.ny), nz(o.nz), single(!o.wide), a(count, std::vector<double>(size_t(nx) * ny * nz))
    {
    }
    size_t at(long i, long j, long k) const { return (size_t(i) * ny + j) * nz + k; }
    template <class F> void each(F work) const
    {
        for (int i = 0; i < nx; i++)
            for (int j = 0; j < ny; j++)
                for (int k = 0; k < nz; k++)
                    work(i, j, k);
    }
    /* middle + width * noise, as on the device */
    void fill(int f, double middle, double width)
    {
        each([&](int i, int j, int k) {
            double v = middle + width * noise(f, i, j, k);
            a[f][at(i, j, k)] = single ? float(v) : v;
        });
    }
    /* Zero outside. */
    double value(int f, long i, long j, long k) const
    {
        bool inside = i >= 0 && j >= 0 && k >= 0 && i < nx && j < ny && k < nz;
        return inside ? a[f][at(i, j, k)] : 0.0;
    }
    /* The difference of order 4 of a field along an axis at an index, half a cell above if `up`, else below. */
    double difference(int f, int axis, bool up, int i, int j, int k) const
    {
        auto v = [&](int by) {
            by += up ? 1 : 0;
            return value(f, i + (axis == 0) * by, j + (axis == 1) * by, k + (axis == 2) * by);
        };
        return 9 / 8. * (v(0) - v(-1)) - (v(1) - v(-2)) / 24;
    }
};

/* Squares of differences from a reference, and of the reference, over a device array. */
template <class T>
void compare_array(const T *device, const Grid &g, const std::vector<double> &reference, double &difference, double &scale)
{
    std::vector<T> row(g.nz);
    for (int i = 0; i < g.nx; i++)
        for (int j = 0; j < g.ny; j++) {
            CUDA(cudaMemcpy(row.data(), device + g.at(i, j, 0), g.nz * sizeof(T), cudaMemcpyDeviceToHost));
            for (int k = 0; k < g.nz; k++) {
                double r = reference[(size_t(i) * g.ny + j) * g.nz + k];
                difference += (row[k] - r) * (row[k] - r);
                scale += r * r;
            }
        }
}

/* The relative L2 distance of the first arrays from references, the largest of several runs. */
struct Worst {
    double error = 0;
    size_t runs = 0;

    template <class T>
    void compare(const Arrays<T> &a, const Grid &g, const std::vector<std::vector<double>> &references, int count)
    {
        CUDA(cudaDeviceSynchronize());
        double difference = 0, scale = 0;
        for (int f = 0; f < count; f++)
            compare_array(a[f], g, references[f], difference, scale);
        double own = std::sqrt(difference / scale);
        error = own > error || own != own ? own : error;
        runs++;
    }
    void print() const { printf("{\"relative_l2\": %.3e, \"launches\": %zu}\n", error, runs); }
};

/* Checks or measures a calculation that can `start` from its first values, `run` a kernel of a step by a launch, and sum up a `checksum`.
 * The reference is compared in the first arrays. */
template <class C, class K, class R>
void check_or_measure(const Options &o, C &c, const Choices<K> &choices, int compared, R reference)
{
    if (o.check) {
        Reference expected = reference(o);
        Worst worst;
        for (size_t l = 0; l < choices[0].size(); l++) {
            c.start();
            for (int s = 0; s < STEPS_OF_CHECK; s++)
                for (size_t kernel = 0; kernel < choices.size(); kernel++)
                    c.run(kernel, choices[kernel][l]);
            worst.compare(c.a, c.g, expected.a, compared);
        }
        worst.print();
        return;
    }
    std::vector<Launch<K>> best;
    std::string text;
    for (size_t kernel = 0; kernel < choices.size(); kernel++) {
        best.push_back(fastest(choices[kernel], [&](auto &l) { c.run(kernel, l); }));
        text += (kernel ? ", " : "") + best[kernel].text();
    }
    c.start();
    auto step = [&] {
        for (size_t kernel = 0; kernel < best.size(); kernel++)
            c.run(kernel, best[kernel]);
    };
    measure(o, c.g, text, step, [&] { return c.checksum(); });
}
