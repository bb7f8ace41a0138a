/* Elastic waves, velocity and stress, order 4 in space, with coefficients of their own at every cell: three for the velocities, lambda,
 * lambda + 2 mu and three shear moduli for the stresses. Normal stresses in cells, two kernels.
 *
 * A thread has 16 bytes along z and marches along x: what a later plane needs again stays in registers, and what it reads from memory as
 * the first one is read a plane ahead. Neighbours along y and z come from the caches. */
#include "common.cuh"

static constexpr int HALO = 2;
static constexpr double DT = 0.25;

/* Velocities along x, y, z; stresses xx, yy, zz, yz, xz, xy; 1 / density at the velocities; lambda, lambda + 2 mu, and mu at yz, xz, xy. */
static constexpr int V = 0, S = 3, FIELDS = 9, B = 9, LAMBDA = 12, MODULUS = 13, MU = 14, ARRAYS = 17;

template <class T> struct Pointers {
    T *a[ARRAYS];
};

template <class T> using Kernel = void (*)(Pointers<T>, Grid);

/* Three fields of which four planes stay in registers, from -1 to 2 for UP and from -2 to 1 otherwise, and the packs of a plane that
 * come from memory: the foremost of those three, and others. */
template <class T, int OTHERS> struct March {
    Pack<T> w[3][4];
    Pack<T> next[3], others[OTHERS], current[OTHERS];

    __device__ void shift()
    {
#pragma unroll
        for (int f = 0; f < 3; f++)
#pragma unroll
            for (int p = 0; p < 3; p++)
                w[f][p] = w[f][p + 1];
    }
};

/* Marches: `fields` are differentiated along x, UP where their bit is set; `others` are read at their own place, where the last
 * SHARED of them have neighbours that read them as well. `work` gets the element, the planes and the others. */
template <bool AHEAD, int SHARED, int OTHERS, class T, class F>
__device__ inline void march(const Pointers<T> &f, const Grid &g, const int (&fields)[3], const bool (&up)[3],
                             const int (&others)[OTHERS], long n, int i, F work)
{
    March<T, OTHERS> m;
    const int end = min(i + g.march, g.nx);
    const long sx = g.sx;
    auto low = [&](int c) { return up[c] ? 1 : 2; };
#pragma unroll
    for (int c = 0; c < 3; c++)
#pragma unroll
        for (int p = 0; p < 3; p++)
            m.w[c][p] = shared_pack(f.a[fields[c]] + n + (p - low(c)) * sx);
    auto read = [&](long n) {
#pragma unroll
        for (int c = 0; c < 3; c++)
            m.next[c] = shared_pack(f.a[fields[c]] + n + (3 - low(c)) * sx);
#pragma unroll
        for (int o = 0; o < OTHERS; o++)
            m.others[o] = o < OTHERS - SHARED ? own_pack(f.a[others[o]] + n) : shared_pack(f.a[others[o]] + n);
    };
    if (AHEAD)
        read(n);
#pragma unroll 1
    for (; i < end; i++, n += sx) {
        if (!AHEAD)
            read(n);
#pragma unroll
        for (int c = 0; c < 3; c++)
            m.w[c][3] = m.next[c];
#pragma unroll
        for (int o = 0; o < OTHERS; o++)
            m.current[o] = m.others[o];
        if (AHEAD && i + 1 < end)
            read(n + sx);
        work(n, m.w, m.current);
        m.shift();
    }
}

/* A difference along y, of values a row apart. UP: for targets half a cell above. */
template <bool UP, class T>
__device__ inline void along_y(Pack<T> &sum, T c1, T c2, const T *p, Pack<T> own, long apart)
{
    constexpr int BELOW = UP ? 1 : 2;
    Pack<T> w[4];
#pragma unroll
    for (int l = 0; l < 4; l++)
        w[l] = l == BELOW ? own : shared_pack(p + (l - BELOW) * apart);
    along(sum, c1, c2, w[0], w[1], w[2], w[3]);
}

template <class T> __device__ inline void along_x(Pack<T> &sum, T c1, T c2, const Pack<T> (&w)[4])
{
    along(sum, c1, c2, w[0], w[1], w[2], w[3]);
}

/* Stores old + factor * sum; behind the row's end stay zeros. */
template <class T>
__device__ inline void store(T *p, Pack<T> old, Pack<T> factor, Pack<T> sum, int left)
{
#pragma unroll
    for (int l = 0; l < Pack<T>::N; l++) {
        sum.v[l] = old.v[l] + factor.v[l] * sum.v[l];
        if (l >= left)
            sum.v[l] = 0;
    }
    store_pack(p, sum);
}

template <class T, bool AHEAD, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) advance_v(Pointers<T> f, Grid g)
{
    const int pack = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    const int i = blockIdx.z * g.march;
    if (pack >= g.packs || j >= g.ny)
        return;
    const bool first = pack == 0, last = pack == g.packs - 1;
    const int left = g.nz - pack * Pack<T>::N;
    const T c1 = T(DT * 9 / 8), c2 = T(-DT / 24);
    const long sy = g.sy;
    T *const *a = f.a;
    march<AHEAD, 3>(f, g, {S, S + 5, S + 4}, {false, true, true}, {V, V + 1, V + 2, B, B + 1, B + 2, S + 1, S + 2, S + 3},
                 g.at(i, j, long(pack) * Pack<T>::N), i, [&](long n, const Pack<T> (&w)[3][4], const Pack<T>(&o)[9]) {
                     const Pack<T> xy = w[1][1], xz = w[2][1], yy = o[6], zz = o[7], yz = o[8];
                     Pack<T> x = {}, y = {}, z = {};
                     along_x(x, c1, c2, w[0]);
                     along_y<true>(x, c1, c2, a[S + 5] + n, xy, sy);
                     along_z<true>(x, c1, c2, a[S + 4] + n, xz, first, last);
                     store(a[V] + n, o[0], o[3], x, left);
                     along_x(y, c1, c2, w[1]);
                     along_y<false>(y, c1, c2, a[S + 1] + n, yy, sy);
                     along_z<true>(y, c1, c2, a[S + 3] + n, yz, first, last);
                     store(a[V + 1] + n, o[1], o[4], y, left);
                     along_x(z, c1, c2, w[2]);
                     along_y<true>(z, c1, c2, a[S + 3] + n, yz, sy);
                     along_z<false>(z, c1, c2, a[S + 2] + n, zz, first, last);
                     store(a[V + 2] + n, o[2], o[5], z, left);
                 });
}

template <class T, bool AHEAD, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) advance_s(Pointers<T> f, Grid g)
{
    const int pack = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    const int i = blockIdx.z * g.march;
    if (pack >= g.packs || j >= g.ny)
        return;
    const bool first = pack == 0, last = pack == g.packs - 1;
    const int left = g.nz - pack * Pack<T>::N;
    const T c1 = T(DT * 9 / 8), c2 = T(-DT / 24);
    const long sy = g.sy;
    T *const *a = f.a;
    march<AHEAD, 0>(f, g, {V, V + 1, V + 2}, {true, false, false},
                 {S, S + 1, S + 2, S + 3, S + 4, S + 5, LAMBDA, MODULUS, MU, MU + 1, MU + 2},
                 g.at(i, j, long(pack) * Pack<T>::N), i, [&](long n, const Pack<T> (&w)[3][4], const Pack<T>(&o)[11]) {
                     const Pack<T> vx = w[0][1], vy = w[1][2], vz = w[2][2];
                     Pack<T> sum = {};
                     along_z<false>(sum, c1, c2, a[V + 1] + n, vy, first, last);
                     along_y<false>(sum, c1, c2, a[V + 2] + n, vz, sy);
                     store(a[S + 3] + n, o[3], o[8], sum, left);
                     sum = {};
                     along_z<false>(sum, c1, c2, a[V] + n, vx, first, last);
                     along_x(sum, c1, c2, w[2]);
                     store(a[S + 4] + n, o[4], o[9], sum, left);
                     sum = {};
                     along_y<false>(sum, c1, c2, a[V] + n, vx, sy);
                     along_x(sum, c1, c2, w[1]);
                     store(a[S + 5] + n, o[5], o[10], sum, left);
                     Pack<T> d[3] = {};
                     along_x(d[0], c1, c2, w[0]);
                     along_y<true>(d[1], c1, c2, a[V + 1] + n, vy, sy);
                     along_z<true>(d[2], c1, c2, a[V + 2] + n, vz, first, last);
#pragma unroll
                     for (int c = 0; c < 3; c++) {
                         Pack<T> own;
#pragma unroll
                         for (int l = 0; l < Pack<T>::N; l++)
                             own.v[l] = o[c].v[l] + o[6].v[l] * (d[(c + 1) % 3].v[l] + d[(c + 2) % 3].v[l]);
                         store(a[S + c] + n, own, o[7], d[c], left);
                     }
                 });
}

template <class T> std::vector<Launch<Kernel<T>>> codes(bool stress)
{
    if (stress)
        return {{advance_s<T, true, 128, 2>, "ahead 128/2", 128},
                {advance_s<T, true, 128, 3>, "ahead 128/3", 128},
                {advance_s<T, false, 128, 3>, "128/3", 128},
                {advance_s<T, false, 128, 4>, "128/4", 128},
                {advance_s<T, false, 256, 2>, "256/2", 256}};
    return {{advance_v<T, true, 128, 2>, "ahead 128/2", 128},
            {advance_v<T, true, 128, 3>, "ahead 128/3", 128},
            {advance_v<T, false, 128, 3>, "128/3", 128},
            {advance_v<T, false, 128, 4>, "128/4", 128},
            {advance_v<T, false, 256, 2>, "256/2", 256}};
}

/* Least and largest value of an array's noise. */
static void range(int array, double &middle, double &width)
{
    middle = array < FIELDS ? 0 : array < LAMBDA ? 1 : array == MODULUS ? 1.5 : 0.5;
    width = array < FIELDS ? 1 : 0.25;
}

template <class T> struct Elastic {
    Grid g;
    Arrays<T> a;
    Pointers<T> pointers;

    explicit Elastic(const Options &o) : g(grid_of<T>(o.nx, o.ny, o.nz, HALO)), a(g, HALO, ARRAYS)
    {
        for (int f = 0; f < ARRAYS; f++)
            pointers.a[f] = a[f];
        start();
    }
    void start()
    {
        for (int f = 0; f < ARRAYS; f++) {
            double middle, width;
            range(f, middle, width);
            fill(a[f], g, f, middle, width);
        }
    }
    void run(size_t, const Launch<Kernel<T>> &l) const { l.start(pointers, g); }
    double checksum() const { return squares(a, g, FIELDS); }
};

/* The same on the CPU in double precision, in the plainest way. */
static Reference reference(const Options &o)
{
    Reference r(o, ARRAYS);
    auto &a = r.a;
    for (int f = 0; f < ARRAYS; f++) {
        double middle, width;
        range(f, middle, width);
        r.fill(f, middle, width);
    }
    auto d = [&](int f, int axis, bool up, int i, int j, int k) { return DT * r.difference(f, axis, up, i, j, k); };
    /* The stress of two axes. */
    auto stress = [](int b, int c) { return b == c ? S + b : S + 6 - b - c; };
    for (int s = 0; s < STEPS_OF_CHECK; s++) {
        r.each([&](int i, int j, int k) {
            for (int c = 0; c < 3; c++) {
                double force = 0;
                for (int b = 0; b < 3; b++)
                    force += d(stress(b, c), b, b != c, i, j, k);
                a[V + c][r.at(i, j, k)] += a[B + c][r.at(i, j, k)] * force;
            }
        });
        r.each([&](int i, int j, int k) {
            size_t n = r.at(i, j, k);
            double diagonal[3], trace = 0;
            for (int c = 0; c < 3; c++)
                trace += diagonal[c] = d(V + c, c, true, i, j, k);
            for (int c = 0; c < 3; c++) {
                int b = (c + 1) % 3, e = (c + 2) % 3;
                a[S + c][n] += a[MODULUS][n] * diagonal[c] + a[LAMBDA][n] * (trace - diagonal[c]);
                a[stress(b, e)][n] += a[MU + c][n] * (d(V + b, e, false, i, j, k) + d(V + e, b, false, i, j, k));
            }
        });
    }
    return r;
}

template <class T> static void with(const Options &o)
{
    Elastic<T> e(o);
    Choices<Kernel<T>> choices = {launches(codes<T>(false), e.g), launches(codes<T>(true), e.g)};
    check_or_measure(o, e, choices, FIELDS, reference);
}

int main(int count, char **words)
{
    Options o = options(count, words);
    o.wide ? with<double>(o) : with<float>(o);
    if (!o.check)
        finish(o);
    return 0;
}
