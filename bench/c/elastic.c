/* Elastic waves, velocity and stress, with density and Lame's moduli per cell, order 4 in space. Normal stresses in cells. */
#include "common.h"

static real *vx, *vy, *vz, *xx, *yy, *zz, *yz, *xz, *xy;
/* 1 / density where the velocities are; moduli where the stresses are. */
static real *bx, *by, *bz, *lambda, *modulus, *myz, *mxz, *mxy;

/* The medium at the centre of a cell. */
static double density(long i, long j, long k) { return 1 + 0.0005 * (j + 0.5); }
static double first(long i, long j, long k) { return 0.5 + 0.0005 * (i + 0.5); }
static double shear(long i, long j, long k) { return 0.5 + 0.0005 * (k + 0.5); }

/* Means over the cells that meet at a face or an edge: 1 for each axis along which there are two. */
static double buoyancy(long i, long j, long k, int x, int y, int z)
{
    return 2 / (density(i, j, k) + density(i - x, j - y, k - z));
}

static double rigidity(long i, long j, long k, int x, int y, int z)
{
    double sum = 0;
    for (int a = 0; a <= x; a++)
        for (int b = 0; b <= y; b++)
            for (int c = 0; c <= z; c++)
                sum += 1 / shear(i - a, j - b, k - c);
    return 4 / sum;
}

static void start(void)
{
    vx = field(0), vy = field(1), vz = field(2);
    xx = field(3), yy = field(4), zz = field(5), yz = field(6), xz = field(7), xy = field(8);
    bx = array(), by = array(), bz = array(), lambda = array(), modulus = array();
    myz = array(), mxz = array(), mxy = array();
    FILL(bx, buoyancy(i, j, k, 1, 0, 0));
    FILL(by, buoyancy(i, j, k, 0, 1, 0));
    FILL(bz, buoyancy(i, j, k, 0, 0, 1));
    FILL(lambda, first(i, j, k));
    FILL(modulus, first(i, j, k) + 2 * shear(i, j, k));
    FILL(myz, rigidity(i, j, k, 0, 1, 1));
    FILL(mxz, rigidity(i, j, k, 1, 0, 1));
    FILL(mxy, rigidity(i, j, k, 1, 1, 0));
}

static int fields(real **list)
{
    real *all[] = {vx, vy, vz, xx, yy, zz, yz, xz, xy};
    memcpy(list, all, sizeof all);
    return 9;
}

static void advance_v(real *restrict vx, real *restrict vy, real *restrict vz, const real *restrict xx,
                      const real *restrict yy, const real *restrict zz, const real *restrict yz,
                      const real *restrict xz, const real *restrict xy, const real *restrict bx,
                      const real *restrict by, const real *restrict bz)
{
    DIFFERENCES;
#pragma omp parallel for
    for (long i = 0; i < nx; i++)
        for (long j = 0; j < ny; j++) {
            long row = at(i, j, 0);
#pragma GCC ivdep
            for (long n = row; n < row + nz; n++) {
                vx[n] += bx[n] * (DOWN(xx, sx) + UP(xy, sy) + UP(xz, 1));
                vy[n] += by[n] * (UP(xy, sx) + DOWN(yy, sy) + UP(yz, 1));
                vz[n] += bz[n] * (UP(xz, sx) + UP(yz, sy) + DOWN(zz, 1));
            }
        }
}

static void advance_s(real *restrict xx, real *restrict yy, real *restrict zz, real *restrict yz, real *restrict xz,
                      real *restrict xy, const real *restrict vx, const real *restrict vy, const real *restrict vz,
                      const real *restrict lambda, const real *restrict modulus, const real *restrict myz,
                      const real *restrict mxz, const real *restrict mxy)
{
    DIFFERENCES;
#pragma omp parallel for
    for (long i = 0; i < nx; i++)
        for (long j = 0; j < ny; j++) {
            long row = at(i, j, 0);
#pragma GCC ivdep
            for (long n = row; n < row + nz; n++) {
                real dx = UP(vx, sx), dy = UP(vy, sy), dz = UP(vz, 1);
                xx[n] += modulus[n] * dx + lambda[n] * (dy + dz);
                yy[n] += modulus[n] * dy + lambda[n] * (dx + dz);
                zz[n] += modulus[n] * dz + lambda[n] * (dx + dy);
                yz[n] += myz[n] * (DOWN(vy, 1) + DOWN(vz, sy));
                xz[n] += mxz[n] * (DOWN(vx, 1) + DOWN(vz, sx));
                xy[n] += mxy[n] * (DOWN(vx, sy) + DOWN(vy, sx));
            }
        }
}

static void step(void)
{
    advance_v(vx, vy, vz, xx, yy, zz, yz, xz, xy, bx, by, bz);
    advance_s(xx, yy, zz, yz, xz, xy, vx, vy, vz, lambda, modulus, myz, mxz, mxy);
}
