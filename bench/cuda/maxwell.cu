/* Maxwell's equations on Yee's lattice, order 4 in space: two kernels, for H and for E. With --media, each component of E has a
 * coefficient of its own at every cell.
 *
 * A thread has 16 bytes along z and marches along x: what a later plane needs again stays in registers, and what it reads from memory as
 * the first one is read a plane ahead. Neighbours along y and z come from the caches. */
#include "common.cuh"

static constexpr int HALO = 2;
static constexpr double DT = 0.45;

template <class T> struct Fields {
    const T *in[3]; /* that are differentiated */
    T *out[3];      /* that are advanced */
    const T *factor[3];
};

template <class T> using Kernel = void (*)(Fields<T>, Grid);

/* UP: advances H by -dt curl(E). Otherwise: E by dt curl(H), times its factors if MEDIA. AHEAD: reads a plane ahead. */
template <class T, bool UP, bool MEDIA, bool AHEAD, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) advance(Fields<T> f, Grid g)
{
    constexpr int N = Pack<T>::N;
    /* Planes and rows that a difference reads: from LOW below to HIGH above. */
    constexpr int LOW = UP ? 1 : 2, HIGH = UP ? 2 : 1;
    const int pack = blockIdx.x * blockDim.x + threadIdx.x;
    const int j = blockIdx.y * blockDim.y + threadIdx.y;
    int i = blockIdx.z * g.march;
    if (pack >= g.packs || j >= g.ny)
        return;
    const int end = min(i + g.march, g.nx);
    const bool first = pack == 0, last = pack == g.packs - 1;
    const T sign = UP ? T(1) : T(-1);
    const T c1 = T(DT * 9 / 8) * sign, c2 = T(-DT / 24) * sign;
    long n = g.at(i, j, long(pack) * N);
    const long sx = g.sx, sy = g.sy;
    const T *__restrict__ fx = f.in[0], *__restrict__ fy = f.in[1], *__restrict__ fz = f.in[2];

    /* Planes of fy and fz around i: [0] is the lowest that is needed. */
    Pack<T> y[4], z[4], next[3], own[3], factor[3];
#pragma unroll
    for (int p = 0; p < 3; p++) {
        y[p] = shared_pack(fy + n + (p - LOW) * sx);
        z[p] = shared_pack(fz + n + (p - LOW) * sx);
    }
    auto read = [&](long n) {
        next[0] = shared_pack(fx + n);
        next[1] = shared_pack(fy + n + HIGH * sx);
        next[2] = shared_pack(fz + n + HIGH * sx);
#pragma unroll
        for (int c = 0; c < 3; c++) {
            own[c] = own_pack(f.out[c] + n);
            if (MEDIA)
                factor[c] = own_pack(f.factor[c] + n);
        }
    };
    if (AHEAD)
        read(n);
#pragma unroll 4
    for (; i < end; i++, n += sx) {
        if (!AHEAD)
            read(n);
        y[3] = next[1];
        z[3] = next[2];
        const Pack<T> x = next[0];
        Pack<T> value[3] = {own[0], own[1], own[2]}, scale[3];
        if (MEDIA) {
            scale[0] = factor[0], scale[1] = factor[1], scale[2] = factor[2];
        }
        /* The plane behind the last one is there: a halo, or another thread's. */
        if (AHEAD && i + 1 < end)
            read(n + sx);

        Pack<T> sum[3] = {};
        Pack<T> old[3] = {value[0], value[1], value[2]};
        if (!MEDIA) {
            sum[0] = old[0], sum[1] = old[1], sum[2] = old[2];
        }
        const T *px = fx + n, *py = fy + n, *pz = fz + n;
        /* All at once, before any is needed. */
        Pack<T> ty[4], tz[4];
#pragma unroll
        for (int p = 0; p < 4; p++) {
            ty[p] = p == LOW ? x : shared_pack(px + (p - LOW) * sy);
            tz[p] = p == LOW ? z[LOW] : shared_pack(pz + (p - LOW) * sy);
        }
        along_z<UP>(sum[0], c1, c2, py, y[LOW], first, last);
        along(sum[0], -c1, -c2, tz[0], tz[1], tz[2], tz[3]);
        along(sum[1], c1, c2, z[0], z[1], z[2], z[3]);
        along_z<UP>(sum[1], -c1, -c2, px, x, first, last);
        along(sum[2], c1, c2, ty[0], ty[1], ty[2], ty[3]);
        along(sum[2], -c1, -c2, y[0], y[1], y[2], y[3]);
#pragma unroll
        for (int c = 0; c < 3; c++) {
#pragma unroll
            for (int l = 0; l < N; l++) {
                if (MEDIA)
                    sum[c].v[l] = old[c].v[l] + scale[c].v[l] * sum[c].v[l];
                /* Behind the row's end stay zeros. */
                if (last && pack * N + l >= g.nz)
                    sum[c].v[l] = 0;
            }
            store_pack(f.out[c] + n, sum[c]);
        }
#pragma unroll
        for (int p = 0; p < 3; p++) {
            y[p] = y[p + 1];
            z[p] = z[p + 1];
        }
    }
}

template <class T, bool UP, bool MEDIA> std::vector<Launch<Kernel<T>>> codes()
{
    return {
        {advance<T, UP, MEDIA, true, 128, 3>, "ahead 128/3", 128},
        {advance<T, UP, MEDIA, true, 128, 4>, "ahead 128/4", 128},
        {advance<T, UP, MEDIA, true, 256, 2>, "ahead 256/2", 256},
        {advance<T, UP, MEDIA, false, 128, 4>, "128/4", 128},
        {advance<T, UP, MEDIA, false, 256, 2>, "256/2", 256},
        {advance<T, UP, MEDIA, false, 512, 1>, "512/1", 512},
    };
}

template <class T> struct Maxwell {
    Grid g;
    Arrays<T> a;
    bool media;

    Maxwell(const Options &o)
        : g(grid_of<T>(o.nx, o.ny, o.nz, HALO)), a(g, HALO, o.media ? 9 : 6), media(o.media)
    {
        start();
    }
    void start()
    {
        for (int f = 0; f < 6; f++)
            fill(a[f], g, f, 0, 1);
        for (int f = 6; media && f < 9; f++)
            fill(a[f], g, f, 0.75, 0.5);
    }
    Fields<T> h() const { return {{a[0], a[1], a[2]}, {a[3], a[4], a[5]}, {}}; }
    Fields<T> e() const
    {
        Fields<T> fields = {{a[3], a[4], a[5]}, {a[0], a[1], a[2]}, {}};
        for (int c = 0; media && c < 3; c++)
            fields.factor[c] = a[6 + c];
        return fields;
    }
    void run(size_t kernel, const Launch<Kernel<T>> &l) const { l.start(kernel == 0 ? h() : e(), g); }
    double checksum() const { return squares(a, g, 6); }
};

/* The same on the CPU in double precision, in the plainest way. */
static Reference reference(const Options &o)
{
    Reference r(o, 9);
    for (int f = 0; f < 6; f++)
        r.fill(f, 0, 1);
    for (int f = 6; f < 9; f++)
        o.media ? r.fill(f, 0.75, 0.5) : r.fill(f, 1, 0);
    auto d = [&](int f, int axis, bool up, int i, int j, int k) { return DT * r.difference(f, axis, up, i, j, k); };
    for (int s = 0; s < STEPS_OF_CHECK; s++)
        for (bool up : {true, false})
            r.each([&](int i, int j, int k) {
                int from = up ? 0 : 3, to = up ? 3 : 0;
                for (int c = 0; c < 3; c++) {
                    int b = (c + 1) % 3, e = (c + 2) % 3;
                    double curl = d(from + e, b, up, i, j, k) - d(from + b, e, up, i, j, k);
                    r.a[to + c][r.at(i, j, k)] += up ? -curl : r.a[6 + c][r.at(i, j, k)] * curl;
                }
            });
    return r;
}

template <class T, bool MEDIA> static void with(const Options &o)
{
    Maxwell<T> m(o);
    Choices<Kernel<T>> choices = {launches(codes<T, true, false>(), m.g), launches(codes<T, false, MEDIA>(), m.g)};
    check_or_measure(o, m, choices, 6, reference);
}

int main(int count, char **words)
{
    Options o = options(count, words);
    if (o.wide)
        o.media ? with<double, true>(o) : with<double, false>(o);
    else
        o.media ? with<float, true>(o) : with<float, false>(o);
    if (!o.check)
        finish(o);
    return 0;
}
