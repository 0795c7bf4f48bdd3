/* heatfem - transient heat conduction with temperature dependent conductivity
 * Bilinear quads on a distorted rectangular mesh, backward Euler in time with a
 * lagged conductivity, Jacobi preconditioned CG with a fixed number of sweeps.
 * Insulated walls, a moving laser spot as the source.
 * usage: heatfem [--steps N] [--fixed]                                        */
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <algorithm>
#include <vector>

#define NX 288                     /* nodes in each direction */
#define NN (NX * NX)
#define NE ((NX - 1) * (NX - 1))
#define CG_ITERS 300
#define TPB 256

static void check(cudaError_t err, const char *what)
{
    if (err == cudaSuccess) return;
    fprintf(stderr, "heatfem: %s: %s\n", what, cudaGetErrorString(err)); exit(1);
}

static double wtime(void) { struct timeval tv; gettimeofday(&tv, NULL); return tv.tv_sec + 1e-6 * tv.tv_usec; }

/* conductivity of the alloy, W/(m K), smooth across the transition */
__host__ __device__ inline double conductivity(double T)
{
    return 14.0 + 0.012 * T + 9.0 / (1.0 + exp(-(T - 620.0) / 45.0));
}

/* local matrix (mass/dt + stiffness) and load of one element */
__host__ __device__ inline void element(const int *n, const double *x, const double *y, const double *T,
                                        double dt, double lx, double ly, double *ae, double *be)
{
    const double gp = 0.57735026918962576, rhoc = 3.6;
    const double sx[4] = {-1, 1, 1, -1}, sy[4] = {-1, -1, 1, 1};
    memset(ae, 0, 16 * sizeof(double)); memset(be, 0, 4 * sizeof(double));
    for (int g = 0; g < 4; g++) {
        double xi = gp * sx[g], eta = gp * sy[g], N[4], dNx[4], dNy[4], dxi[4], det_[4];
        double j00 = 0, j01 = 0, j10 = 0, j11 = 0, Tg = 0, px = 0, py = 0;
        for (int a = 0; a < 4; a++) {
            N[a] = 0.25 * (1 + sx[a] * xi) * (1 + sy[a] * eta);
            dxi[a] = 0.25 * sx[a] * (1 + sy[a] * eta);
            det_[a] = 0.25 * sy[a] * (1 + sx[a] * xi);
            j00 += dxi[a] * x[n[a]]; j01 += dxi[a] * y[n[a]];
            j10 += det_[a] * x[n[a]]; j11 += det_[a] * y[n[a]];
            Tg += N[a] * T[n[a]]; px += N[a] * x[n[a]]; py += N[a] * y[n[a]];
        }
        double det = j00 * j11 - j01 * j10, k = conductivity(Tg);
        for (int a = 0; a < 4; a++) {
            dNx[a] = (j11 * dxi[a] - j01 * det_[a]) / det;
            dNy[a] = (j00 * det_[a] - j10 * dxi[a]) / det;
        }
        double r2 = (px - lx) * (px - lx) + (py - ly) * (py - ly);
        double q = 9.0e4 * exp(-r2 / 0.004);
        for (int a = 0; a < 4; a++) {
            be[a] += det * N[a] * (q + rhoc * Tg / dt);
            for (int b = 0; b < 4; b++)
                ae[4 * a + b] += det * (rhoc / dt * N[a] * N[b] + k * (dNx[a] * dNx[b] + dNy[a] * dNy[b]));
        }
    }
}

__global__ void assemble(const int *conn, const int *map, const double *x, const double *y, const double *T,
                         double dt, double lx, double ly, double *val, double *rhs)
{
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= NE) return;
    double ae[16], be[4];
    element(conn + 4 * e, x, y, T, dt, lx, ly, ae, be);
    for (int i = 0; i < 16; i++) atomicAdd(&val[map[16 * e + i]], ae[i]);
    for (int a = 0; a < 4; a++) atomicAdd(&rhs[conn[4 * e + a]], be[a]);
}

__device__ void block_add(double v, double *out)
{
    __shared__ double s[TPB / 32];
    for (int o = 16; o; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
    if ((threadIdx.x & 31) == 0) s[threadIdx.x >> 5] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < TPB / 32; i++) v += s[i];
        atomicAdd(out, v);
    }
}

__device__ double row_product(int i, const int *ptr, const int *col, const double *val, const double *p)
{
    double s = 0;
    for (int k = ptr[i]; k < ptr[i + 1]; k++) s += val[k] * p[col[k]];
    return s;
}

/* r = b - A x, z = D^-1 r, p = z */
__global__ void cg_start(const int *ptr, const int *col, const int *diag, const double *val, const double *b,
                         const double *x, double *r, double *p, double *dinv, double *rz)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double c = 0;
    if (i < NN) {
        r[i] = b[i] - row_product(i, ptr, col, val, x);
        dinv[i] = 1.0 / val[diag[i]]; p[i] = dinv[i] * r[i]; c = p[i] * r[i];
    }
    block_add(c, rz);
}

__global__ void cg_apply(const int *ptr, const int *col, const double *val, const double *p, double *q, double *pq)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double c = 0;
    if (i < NN) { q[i] = row_product(i, ptr, col, val, p); c = q[i] * p[i]; }
    block_add(c, pq);
}

__global__ void cg_update(double *x, double *r, const double *p, const double *q, const double *dinv,
                          const double *rz, const double *pq, double *rz_new)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double c = 0, alpha = *pq > 1e-290 ? *rz / *pq : 0.0;
    if (i < NN) { x[i] += alpha * p[i]; r[i] -= alpha * q[i]; c = r[i] * r[i] * dinv[i]; }
    block_add(c, rz_new);
}

__global__ void cg_direction(double *p, const double *r, const double *dinv, const double *rz, const double *rz_new)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < NN) p[i] = dinv[i] * r[i] + (*rz > 1e-290 ? *rz_new / *rz : 0.0) * p[i];
}

template <class T> static T *upload(const std::vector<T> &h)
{
    T *d; check(cudaMalloc(&d, h.size() * sizeof(T)), "cudaMalloc");
    check(cudaMemcpy(d, h.data(), h.size() * sizeof(T), cudaMemcpyHostToDevice), "upload");
    return d;
}

int main(int argc, char **argv)
{
    int steps = 260, fixed = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--fixed")) fixed = 1;
        else if (!strcmp(argv[i], "--steps") && i + 1 < argc) steps = atoi(argv[++i]);
    }
    const double dt = 2e-3, h = 1.0 / (NX - 1);
    std::vector<double> x(NN), y(NN), T(NN, 300.0);
    std::vector<int> conn(4 * NE), map(16 * NE), ptr(NN + 1, 0), col, diag(NN);
    for (int j = 0; j < NX; j++)
        for (int i = 0; i < NX; i++) {
            x[j * NX + i] = i * h + 0.2 * h * sin(31.0 * i * h) * sin(17.0 * j * h);
            y[j * NX + i] = j * h + 0.2 * h * sin(23.0 * i * h) * cos(29.0 * j * h);
            for (int b = -1; b <= 1; b++)
                for (int a = -1; a <= 1; a++)
                    if (i + a >= 0 && i + a < NX && j + b >= 0 && j + b < NX) {
                        if (!a && !b) diag[j * NX + i] = (int)col.size();
                        col.push_back((j + b) * NX + i + a);
                    }
            ptr[j * NX + i + 1] = (int)col.size();
        }
    for (int e = 0; e < NE; e++) {
        int n = (e / (NX - 1)) * NX + e % (NX - 1), c[4] = {n, n + 1, n + NX + 1, n + NX};
        for (int a = 0; a < 4; a++) {
            conn[4 * e + a] = c[a];
            for (int b = 0; b < 4; b++)
                for (int k = ptr[c[a]]; k < ptr[c[a] + 1]; k++)
                    if (col[k] == c[b]) map[16 * e + 4 * a + b] = k;
        }
    }
    size_t nnz = col.size();
    std::vector<double> val(nnz), rhs(NN), zero(NN, 0.0), scal(2 * CG_ITERS + 2, 0.0);
    double *d_x = upload(x), *d_y = upload(y), *d_T = upload(T), *d_val = upload(val), *d_rhs = upload(rhs);
    double *r = upload(zero), *p = upload(zero), *q = upload(zero), *dinv = upload(zero);
    double *rz = upload(scal), *pq = rz + CG_ITERS + 1;
    int *d_conn = upload(conn), *d_map = upload(map), *d_ptr = upload(ptr), *d_col = upload(col), *d_diag = upload(diag);
    int nb = (NN + TPB - 1) / TPB, warm = steps / 4;
    printf("heatfem: %d nodes, %d elements, %zu nonzeros\n", NN, NE, nnz);

    double t0 = wtime();
    for (int s = 0; s < steps; s++) {
        if (s == warm) { check(cudaDeviceSynchronize(), "sync"); t0 = wtime(); }
        double lx = 0.5 + 0.3 * cos(0.02 * s), ly = 0.5 + 0.3 * sin(0.02 * s);
        if (fixed) {
            check(cudaMemsetAsync(d_val, 0, nnz * 8), "memset"); check(cudaMemsetAsync(d_rhs, 0, NN * 8), "memset");
            assemble<<<(NE + 127) / 128, 128>>>(d_conn, d_map, d_x, d_y, d_T, dt, lx, ly, d_val, d_rhs);
        } else {
            check(cudaMemcpy(T.data(), d_T, NN * sizeof(double), cudaMemcpyDeviceToHost), "get T");
            std::fill(val.begin(), val.end(), 0.0);
            std::fill(rhs.begin(), rhs.end(), 0.0);
            for (int e = 0; e < NE; e++) {
                double ae[16], be[4];
                element(&conn[4 * e], x.data(), y.data(), T.data(), dt, lx, ly, ae, be);
                for (int i = 0; i < 16; i++) val[map[16 * e + i]] += ae[i];
                for (int a = 0; a < 4; a++) rhs[conn[4 * e + a]] += be[a];
            }
            check(cudaMemcpy(d_val, val.data(), nnz * sizeof(double), cudaMemcpyHostToDevice), "put A");
            check(cudaMemcpy(d_rhs, rhs.data(), NN * sizeof(double), cudaMemcpyHostToDevice), "put b");
        }
        check(cudaMemsetAsync(rz, 0, scal.size() * sizeof(double)), "memset");
        cg_start<<<nb, TPB>>>(d_ptr, d_col, d_diag, d_val, d_rhs, d_T, r, p, dinv, rz);
        for (int it = 0; it < CG_ITERS; it++) {
            cg_apply<<<nb, TPB>>>(d_ptr, d_col, d_val, p, q, pq + it);
            cg_update<<<nb, TPB>>>(d_T, r, p, q, dinv, rz + it, pq + it, rz + it + 1);
            cg_direction<<<nb, TPB>>>(p, r, dinv, rz + it, rz + it + 1);
        }
        check(cudaGetLastError(), "launch");
        if (s % 50 == 0) {
            double res[2], tmid;
            check(cudaMemcpy(&res[0], rz, 8, cudaMemcpyDeviceToHost), "res");
            check(cudaMemcpy(&res[1], rz + CG_ITERS, 8, cudaMemcpyDeviceToHost), "res");
            check(cudaMemcpy(&tmid, d_T + NN / 2 + NX / 2, 8, cudaMemcpyDeviceToHost), "T");
            printf("step %4d  |r| %.3e -> %.3e  T(mid) %.2f\n", s, sqrt(res[0]), sqrt(res[1]), tmid);
        }
    }
    check(cudaDeviceSynchronize(), "sync");
    printf("round_ms %.4f\n", 1e3 * (wtime() - t0) / (steps - warm));
    return 0;
}
