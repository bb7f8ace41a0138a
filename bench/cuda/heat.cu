/* The heat equation with five points on a plane (NY is 1), T += f laplacian(T), zeros outside.
 *
 * Several steps of a launch: a warp has a strip of columns, V of a lane, and marches along x. Of each step but the last it keeps two rows
 * in registers; a row that arrives makes one of the first step, that one of the second step, and so on. Neighbours along z come by
 * shuffles, so nothing is exchanged between warps; strips overlap by a column for each step on both sides, and marches by a row. The next
 * row is read a row ahead.
 *
 * One step of a launch, for comparison: 16 bytes along z for a thread, the rows around it in registers. */
#include "common.cuh"

static constexpr double FACTOR = 0.15;

template <class T> struct Fields {
    const T *from;
    T *to;
};

/* V values that lie on as many times their size. */
template <class T, int V> struct alignas(V * sizeof(T)) Lanes {
    T v[V];
};

template <class T> using Kernel = void (*)(Fields<T>, Grid);

template <class T, int V, int STEPS> struct Strip {
    static constexpr int HALO = (STEPS + V - 1) / V * V;
    static constexpr int USED = 32 * V - 2 * HALO;
};

template <class T, int V, int STEPS, bool EDGE>
__device__ void march(const Fields<T> &f, const Grid &g, int k, int first, int end, bool stores)
{
    typedef Lanes<T, V> Row;
    T before[STEPS][V], own[STEPS][V], next[V];
    bool column[V];
#pragma unroll
    for (int v = 0; v < V; v++) {
#pragma unroll
        for (int l = 0; l < STEPS; l++)
            before[l][v] = own[l][v] = 0;
        column[v] = !EDGE || (k + v >= 0 && k + v < g.nz);
    }
    auto read = [&](int i) {
        Row row = {};
        /* Rows are whole lines of 128 bytes. */
        if (!EDGE || (i >= 0 && i < g.nx && k >= 0 && k < g.sy))
            row = *reinterpret_cast<const Row *>(f.from + g.at(i, 0, k));
#pragma unroll
        for (int v = 0; v < V; v++)
            next[v] = row.v[v];
    };
    read(first - STEPS);
#pragma unroll 2
    for (int i = first - STEPS; i < end + STEPS; i++) {
        T row[V];
#pragma unroll
        for (int v = 0; v < V; v++)
            row[v] = next[v];
        if (i + 1 < end + STEPS)
            read(i + 1);
#pragma unroll
        for (int l = 0; l < STEPS; l++) {
            const T below = __shfl_up_sync(~0u, own[l][V - 1], 1), above = __shfl_down_sync(~0u, own[l][0], 1);
            const bool inside = !EDGE || (i - l - 1 >= 0 && i - l - 1 < g.nx);
            T sum[V];
#pragma unroll
            for (int v = 0; v < V; v++) {
                const T west = v > 0 ? own[l][v > 0 ? v - 1 : 0] : below;
                const T east = v < V - 1 ? own[l][v < V - 1 ? v + 1 : 0] : above;
                const T around = before[l][v] + row[v] + (west + east);
                sum[v] = T(1 - 4 * FACTOR) * own[l][v] + T(FACTOR) * around;
                if (EDGE && !(inside && column[v]))
                    sum[v] = 0;
            }
#pragma unroll
            for (int v = 0; v < V; v++) {
                before[l][v] = own[l][v];
                own[l][v] = row[v];
                row[v] = sum[v];
            }
        }
        if (i - STEPS >= first && stores) {
            Row done;
#pragma unroll
            for (int v = 0; v < V; v++)
                done.v[v] = row[v];
            *reinterpret_cast<Row *>(f.to + g.at(i - STEPS, 0, k)) = done;
        }
    }
}

template <class T, int V, int STEPS, int BLOCKS>
__global__ void __launch_bounds__(128, BLOCKS) block_of_steps(Fields<T> f, Grid g)
{
    typedef Strip<T, V, STEPS> S;
    const int lane = threadIdx.x, strip = blockIdx.x * blockDim.y + threadIdx.y;
    const int begin = strip * S::USED, k = begin - S::HALO + lane * V;
    const int first = blockIdx.z * g.march, end = min(first + g.march, g.nx);
    if (begin >= g.nz)
        return;
    const bool stores = lane * V >= S::HALO && lane * V < 32 * V - S::HALO && k < g.nz;
    const bool edge = begin < S::HALO || begin - S::HALO + 32 * V > g.nz || first < STEPS + 1 || end + STEPS + 1 > g.nx;
    if (edge)
        march<T, V, STEPS, true>(f, g, k, first, end, stores);
    else
        march<T, V, STEPS, false>(f, g, k, first, end, stores);
}

template <class T> __global__ void __launch_bounds__(128) one_step(Fields<T> f, Grid g)
{
    constexpr int N = Pack<T>::N;
    const int pack = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.z * g.march;
    if (pack >= g.packs)
        return;
    const int end = min(i + g.march, g.nx);
    const bool first = pack == 0, last = pack == g.packs - 1;
    const T *__restrict__ u = f.from;
    long n = g.at(i, 0, long(pack) * N);
    Pack<T> before = shared_pack(u + n - g.sx), own = shared_pack(u + n);
    for (; i < end; i++, n += g.sx) {
        const Pack<T> next = shared_pack(u + n + g.sx);
        const T below = first ? T(0) : __ldg(u + n - 1), above = last ? T(0) : __ldg(u + n + N);
        Pack<T> sum;
#pragma unroll
        for (int l = 0; l < N; l++) {
            const T west = l > 0 ? own.v[l > 0 ? l - 1 : 0] : below;
            const T east = l < N - 1 ? own.v[l < N - 1 ? l + 1 : 0] : above;
            const T around = before.v[l] + next.v[l] + (west + east);
            sum.v[l] = T(1 - 4 * FACTOR) * own.v[l] + T(FACTOR) * around;
            if (last && pack * N + l >= g.nz)
                sum.v[l] = 0;
        }
        store_pack(f.to + n, sum);
        before = own;
        own = next;
    }
}

/* A kernel, the steps that it does, and how it is started. */
template <class T> struct Code {
    Kernel<T> kernel;
    std::string name;
    int steps, march;
    int used; /* columns of a warp; 0: 16 bytes of a thread */

    void start(const Fields<T> &f, Grid g) const
    {
        g.march = march;
        const int marches = (g.nx + march - 1) / march;
        if (used == 0) {
            kernel<<<dim3((g.packs + 127) / 128, 1, marches), 128>>>(f, g);
        } else {
            const int strips = (g.nz + used - 1) / used;
            kernel<<<dim3((strips + 3) / 4, 1, marches), dim3(32, 4)>>>(f, g);
        }
    }
    std::string text() const { return name + " march " + std::to_string(march); }
};

template <class T, int V, int STEPS, int BLOCKS> void add(std::vector<Code<T>> &all)
{
    for (int march : {32, 64, 128, 256, 512}) {
        std::string name = std::to_string(STEPS) + " steps, " + std::to_string(V) + " columns, " + std::to_string(BLOCKS) + " blocks";
        all.push_back({block_of_steps<T, V, STEPS, BLOCKS>, name, STEPS, march, Strip<T, V, STEPS>::USED});
    }
}

template <class T> std::vector<Code<T>> codes()
{
    std::vector<Code<T>> all;
    for (int march : {8, 16, 32, 64})
        all.push_back({one_step<T>, "1 step", 1, march, 0});
    if constexpr (sizeof(T) == 4) {
        add<T, 4, 4, 6>(all);
        add<T, 4, 8, 4>(all);
        add<T, 4, 8, 5>(all);
        add<T, 4, 12, 3>(all);
        add<T, 4, 16, 2>(all);
    } else {
        add<T, 2, 4, 6>(all);
        add<T, 2, 6, 5>(all);
        add<T, 2, 8, 4>(all);
        add<T, 4, 6, 3>(all);
        add<T, 4, 8, 2>(all);
    }
    return all;
}

/* Rows that follow each other, with one of zeros before and behind them. */
template <class T> Grid plane(const Options &o)
{
    Grid g = grid_of<T>(o.nx, 1, o.nz, 1);
    g.sx = g.sy;
    return g;
}
static Grid with_zeros(Grid g)
{
    g.nx += 2;
    return g;
}

template <class T> struct Heat {
    Grid g;
    Arrays<T> a;
    bool odd = false;

    explicit Heat(const Options &o) : g(plane<T>(o)), a(with_zeros(g), 1, 2) { start(); }
    void start()
    {
        fill(a[0], g, 0, 0, 1);
        odd = false;
    }
    void run(const Code<T> &code)
    {
        code.start(Fields<T>{a[odd ? 1 : 0], a[odd ? 0 : 1]}, g);
        odd = !odd;
    }
    const T *newest() const { return a[odd ? 1 : 0]; }
};

static std::vector<double> reference(const Options &o, int steps)
{
    Reference r(o, 2);
    r.fill(0, 0, 1);
    for (int s = 0; s < steps; s++) {
        const int now = s % 2;
        r.each([&](int i, int j, int k) {
            const double along_x = r.value(now, i - 1, j, k) + r.value(now, i + 1, j, k);
            const double around = along_x + r.value(now, i, j, k - 1) + r.value(now, i, j, k + 1);
            r.a[1 - now][r.at(i, j, k)] = (1 - 4 * FACTOR) * r.a[now][r.at(i, j, k)] + FACTOR * around;
        });
    }
    return r.a[steps % 2];
}

template <class T> static void with(const Options &o)
{
    Heat<T> h(o);
    const std::vector<Code<T>> all = codes<T>();
    if (o.check) {
        double worst = 0;
        for (const Code<T> &code : all) {
            h.start();
            for (int launch = 0; launch < 3; launch++)
                h.run(code);
            CUDA(cudaDeviceSynchronize());
            double difference = 0, scale = 0;
            compare_array(h.newest(), h.g, reference(o, 3 * code.steps), difference, scale);
            const double own = std::sqrt(difference / scale);
            worst = own > worst || own != own ? own : worst;
        }
        printf("{\"relative_l2\": %.3e, \"launches\": %zu}\n", worst, all.size());
        return;
    }
    /* The fastest per step, and the fastest of one step. */
    Clock clock;
    const Code<T> *best = nullptr, *plain = nullptr;
    double least = INFINITY, least_plain = INFINITY;
    for (const Code<T> &code : all) {
        double ms = INFINITY;
        for (int turn = 0; turn < 3; turn++)
            ms = std::min<double>(ms, clock.time([&] {
                for (int launch = 0; launch < 4; launch++)
                    h.run(code);
            }) / (4 * code.steps));
        if (ms < least)
            least = ms, best = &code;
        if (code.steps == 1 && ms < least_plain)
            least_plain = ms, plain = &code;
    }
    h.start();
    const double cells = double(h.g.nx) * h.g.nz;
    char text[200];
    snprintf(text, sizeof text, "%s; %s %.0f", best->text().c_str(), plain->text().c_str(), cells / least_plain * 1e-6);
    measure(o, h.g, text, [&] { h.run(*best); }, [&] { return squares(h.newest(), h.g); }, best->steps);
    finish(o);
}

int main(int count, char **words)
{
    const Options o = options(count, words);
    if (o.ny != 1) {
        fprintf(stderr, "%s: NY is 1\n", words[0]);
        return 2;
    }
    o.wide ? with<double>(o) : with<float>(o);
    return 0;
}
