/* The scalar wave equation, order 2 or 8 in space (--order), with a coefficient (c dt)^2 of its own at every node: one kernel, which
 * overwrites the older of two fields.
 *
 * A thread has 16 bytes along z and marches along x with the planes around it in registers, the foremost of which it reads a plane ahead.
 * Neighbours along y and z come from the caches. */
#include "common.cuh"

/* Factors of the centred second difference of order 2 R: own value, then neighbours by distance. */
template <int R> __host__ __device__ constexpr double factor(int distance)
{
    constexpr double two[] = {-2, 1};
    constexpr double eight[] = {-205 / 72., 8 / 5., -1 / 5., 8 / 315., -1 / 560.};
    return R == 1 ? two[distance < 2 ? distance : 0] : eight[distance];
}

template <class T> struct Fields {
    const T *u;
    T *old; /* gets the new values */
    const T *c;
};

template <class T> using Kernel = void (*)(Fields<T>, Grid);

template <class T, int R, bool AHEAD, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) advance(Fields<T> f, Grid g)
{
    constexpr int N = Pack<T>::N;
    /* Packs along z that hold R values. */
    constexpr int BESIDE = (R + N - 1) / N;
    const int pack = blockIdx.x * blockDim.x + threadIdx.x;
    const int j = blockIdx.y * blockDim.y + threadIdx.y;
    int i = blockIdx.z * g.march;
    if (pack >= g.packs || j >= g.ny)
        return;
    const int end = min(i + g.march, g.nx);
    const bool last = pack == g.packs - 1;
    long n = g.at(i, j, long(pack) * N);
    const long sx = g.sx, sy = g.sy;
    const T *__restrict__ u = f.u;

    Pack<T> x[2 * R + 1], next, old, c;
#pragma unroll
    for (int p = 0; p < 2 * R; p++)
        x[p] = shared_pack(u + n + (p - R) * sx);
    auto read = [&](long n) {
        next = shared_pack(u + n + R * sx);
        old = own_pack(f.old + n);
        c = own_pack(f.c + n);
    };
    if (AHEAD)
        read(n);
/* For order 8, moving planes through registers costs less than the registers of several copies of the code. */
#pragma unroll(R == 1 ? 3 : 1)
    for (; i < end; i++, n += sx) {
        if (!AHEAD)
            read(n);
        x[2 * R] = next;
        const Pack<T> before = old, speed = c;
        if (AHEAD && i + 1 < end)
            read(n + sx);
        T w[(2 * BESIDE + 1) * N];
#pragma unroll
        for (int b = 0; b < 2 * BESIDE + 1; b++) {
            const int at = pack + b - BESIDE;
            Pack<T> a = x[R];
            if (b != BESIDE) {
                a = Pack<T>{};
                if (at >= 0 && at < g.packs)
                    a = shared_pack(u + n + (b - BESIDE) * N);
            }
#pragma unroll
            for (int l = 0; l < N; l++)
                w[b * N + l] = a.v[l];
        }
        Pack<T> sum;
#pragma unroll
        for (int l = 0; l < N; l++)
            sum.v[l] = T(3 * factor<R>(0)) * x[R].v[l];
#pragma unroll
        for (int p = 1; p <= R; p++) {
            const Pack<T> above = shared_pack(u + n + p * sy), below = shared_pack(u + n - p * sy);
#pragma unroll
            for (int l = 0; l < N; l++) {
                const T along_x = x[R + p].v[l] + x[R - p].v[l], along_y = above.v[l] + below.v[l];
                const T along_z = w[BESIDE * N + l + p] + w[BESIDE * N + l - p];
                sum.v[l] += T(factor<R>(p)) * (along_x + along_y + along_z);
            }
        }
#pragma unroll
        for (int l = 0; l < N; l++) {
            sum.v[l] = 2 * x[R].v[l] - before.v[l] + speed.v[l] * sum.v[l];
            /* Behind the row's end stay zeros. */
            if (last && pack * N + l >= g.nz)
                sum.v[l] = 0;
        }
        store_pack(f.old + n, sum);
#pragma unroll
        for (int p = 0; p < 2 * R; p++)
            x[p] = x[p + 1];
    }
}

template <class T, int R> std::vector<Launch<Kernel<T>>> codes()
{
    return {
        {advance<T, R, true, 128, 4>, "ahead 128/4", 128}, {advance<T, R, true, 256, 2>, "ahead 256/2", 256},
        {advance<T, R, true, 128, 5>, "ahead 128/5", 128}, {advance<T, R, false, 128, 4>, "128/4", 128},
        {advance<T, R, false, 128, 5>, "128/5", 128},      {advance<T, R, false, 512, 1>, "512/1", 512},
    };
}

/* The field, its older values, the coefficient. */
template <class T> struct Wave {
    Grid g;
    Arrays<T> a;
    bool odd = false; /* which of the first two is the older one */

    Wave(const Options &o, int halo) : g(grid_of<T>(o.nx, o.ny, o.nz, halo)), a(g, halo, 3) { start(); }
    void start()
    {
        fill(a[0], g, 0, 0, 1);
        fill(a[1], g, 1, 0, 1);
        fill(a[2], g, 2, 0.1, 0.1);
        odd = false;
    }
    void run(size_t, const Launch<Kernel<T>> &l)
    {
        l.start(Fields<T>{a[odd ? 1 : 0], a[odd ? 0 : 1], a[2]}, g);
        odd = !odd;
    }
    /* Of the newest values. */
    double checksum() const { return squares(a[odd ? 1 : 0], g); }
};

/* The same on the CPU in double precision, in the plainest way. */
template <int R> Reference reference(const Options &o)
{
    Reference r(o, 3);
    r.fill(0, 0, 1);
    r.fill(1, 0, 1);
    r.fill(2, 0.1, 0.1);
    for (int s = 0; s < STEPS_OF_CHECK; s++) {
        int now = s % 2, old = 1 - now;
        r.each([&](int i, int j, int k) {
            double sum = 0;
            for (int p = -R; p <= R; p++)
                sum += factor<R>(std::abs(p)) *
                       (r.value(now, i + p, j, k) + r.value(now, i, j + p, k) + r.value(now, i, j, k + p));
            size_t n = r.at(i, j, k);
            r.a[old][n] = 2 * r.a[now][n] - r.a[old][n] + r.a[2][n] * sum;
        });
    }
    return r;
}

template <class T, int R> static void with(const Options &o)
{
    Wave<T> w(o, R);
    Choices<Kernel<T>> choices = {launches(codes<T, R>(), w.g)};
    check_or_measure(o, w, choices, 2, reference<R>);
}

int main(int count, char **words)
{
    Options o = options(count, words);
    if (o.order != 2 && o.order != 8) {
        fprintf(stderr, "%s: the order is 2 or 8\n", words[0]);
        return 2;
    }
    if (o.wide)
        o.order == 2 ? with<double, 1>(o) : with<double, 4>(o);
    else
        o.order == 2 ? with<float, 1>(o) : with<float, 4>(o);
    if (!o.check)
        finish(o);
    return 0;
}
