// bandwatch - wideband spectrum monitor: IQ blocks from the digitiser ring are
// channelised on the GPU, averaged, and the host keeps an occupancy table.
//
// nvcc -O2 -lineinfo -arch=sm_90 -o bandwatch bandwatch.cu -lcufft
#include <cuda_runtime.h>
#include <cufft.h>
#include <getopt.h>
#include <time.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

static void die(const char *file, int line, const char *msg) {
    fprintf(stderr, "bandwatch: %s:%d: %s\n", file, line, msg);
    exit(1);
}
#define CU(x)  do { cudaError_t s = (x); if (s != cudaSuccess) die(__FILE__, __LINE__, cudaGetErrorString(s)); } while (0)
#define FFT(x) do { cufftResult s = (x); if (s != CUFFT_SUCCESS) die(__FILE__, __LINE__, #x); } while (0)

static const int NFFT = 8192;            // channels
static const int NSEG = 1024;            // transforms per block
static const int AVG = 64;               // transforms averaged per output row
static const int ROWS = NSEG / AVG;
static const size_t NSAMP = size_t(NFFT) * NSEG;
static const size_t NOUT = size_t(NFFT) * ROWS;
static const int RING = 4;

__global__ void unpack(const short2 *in, const float *win, cufftComplex *out) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < NSAMP; i += size_t(gridDim.x) * blockDim.x) {
        short2 v = in[i];
        float w = win[i % NFFT] * (1.0f / 32768.0f);
        out[i] = make_float2(v.x * w, v.y * w);
    }
}

__global__ void average(const cufftComplex *spec, float *row) {
    int bin = blockIdx.x * blockDim.x + threadIdx.x;
    const cufftComplex *s = spec + size_t(blockIdx.y) * AVG * NFFT + bin;
    float acc = 0;
    for (int k = 0; k < AVG; ++k) {
        cufftComplex c = s[size_t(k) * NFFT];
        acc += c.x * c.x + c.y * c.y;
    }
    row[size_t(blockIdx.y) * NFFT + bin] = 10.0f * log10f(acc / AVG + 1e-12f);
}

// hysteresis: a channel is busy after it is 6 dB over the slow noise estimate
struct Occupancy {
    std::vector<float> noise = std::vector<float>(NFFT, -10.0f);
    std::vector<unsigned> busy = std::vector<unsigned>(NFFT, 0);
    unsigned long rows = 0;
    void update(const float *db) {
        for (int r = 0; r < ROWS; ++r, db += NFFT, ++rows)
            for (int c = 0; c < NFFT; ++c) {
                float over = db[c] - noise[c];
                busy[c] += over > 6.0f;
                noise[c] += over > 6.0f ? 0.0005f : 0.02f * over;
            }
    }
    double percent() const {
        double n = 0;
        for (unsigned b : busy) n += b;
        return rows ? 100.0 * n / (double(rows) * NFFT) : 0.0;
    }
};

static void digitise(short2 *dst, int seed) {
    static std::vector<float> lut;
    if (lut.empty())
        for (int i = 0; i < 65536; ++i) lut.push_back(sinf(i * 6.2831853f / 65536));
    unsigned x = 88675123u + 977u * seed, ph[5] = {0, 0, 0, 0, 0};
    const unsigned inc[5] = {3000, 11111, 24680, 40404, 55555};
    for (size_t i = 0; i < NSAMP; ++i) {
        x ^= x << 13; x ^= x >> 17; x ^= x << 5;
        float re = float(int(x & 1023) - 512), im = float(int(x >> 12 & 1023) - 512);
        for (int k = 0; k < 5; ++k) {
            ph[k] += inc[k];
            if (((i >> 19) + k + seed) & 1) continue;
            re += 300 * lut[(ph[k] + 16384) & 65535];
            im += 300 * lut[ph[k] & 65535];
        }
        dst[i] = make_short2(short(re), short(im));
    }
}

template <class T> static T *pinned(size_t n) {
    T *p;
    CU(cudaMallocHost((void **)&p, n * sizeof(T)));
    return p;
}

struct Lane {                            // everything one block in flight needs
    short2 *d_iq; cufftComplex *d_spec; float *d_row; cudaStream_t st; cudaEvent_t done; cufftHandle plan;
    Lane() {
        CU(cudaMalloc(&d_iq, NSAMP * sizeof(short2)));
        CU(cudaMalloc(&d_spec, NSAMP * sizeof(cufftComplex)));
        CU(cudaMalloc(&d_row, NOUT * sizeof(float)));
        CU(cudaStreamCreate(&st));
        CU(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
        FFT(cufftPlan1d(&plan, NFFT, CUFFT_C2C, NSEG));
        FFT(cufftSetStream(plan, st));
    }
    void compute(const float *win) {
        unpack<<<132 * 8, 256, 0, st>>>(d_iq, win, d_spec);
        FFT(cufftExecC2C(plan, d_spec, d_spec, CUFFT_FORWARD));
        average<<<dim3(NFFT / 256, ROWS), 256, 0, st>>>(d_spec, d_row);
        CU(cudaGetLastError());
    }
};

static double seconds() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    int steps = 1400, fixed = 0, c;
    static option opts[] = {{"steps", required_argument, 0, 's'}, {"fixed", no_argument, 0, 'f'}, {0, 0, 0, 0}};
    while ((c = getopt_long(argc, argv, "s:f", opts, 0)) != -1) {
        if (c == 's') steps = atoi(optarg);
        else if (c == 'f') fixed = 1;
        else return 2;
    }
    std::vector<float> win(NFFT);
    for (int i = 0; i < NFFT; ++i) win[i] = 0.5f - 0.5f * cosf(6.2831853f * i / NFFT);
    float *d_win;
    CU(cudaMalloc(&d_win, NFFT * sizeof(float)));
    CU(cudaMemcpy(d_win, win.data(), NFFT * sizeof(float), cudaMemcpyHostToDevice));

    std::vector<std::vector<short2>> heap_ring;
    std::vector<std::vector<float>> heap_rows;
    short2 *ring[RING];
    float *rows[2];
    for (int i = 0; i < RING; ++i) {
        if (fixed) ring[i] = pinned<short2>(NSAMP);
        else { heap_ring.emplace_back(NSAMP); ring[i] = heap_ring.back().data(); }
        digitise(ring[i], i);
    }
    for (int i = 0; i < 2; ++i) {
        if (fixed) rows[i] = pinned<float>(NOUT);
        else { heap_rows.emplace_back(NOUT); rows[i] = heap_rows.back().data(); }
    }
    Lane lane[2];
    Occupancy occ;
    const int warm = steps / 4;
    CU(cudaDeviceSynchronize());
    double t0 = seconds();
    for (int n = 0; n < steps; ++n) {
        if (n == warm) { CU(cudaDeviceSynchronize()); t0 = seconds(); }
        const short2 *iq = ring[n % RING];
        if (fixed) {
            Lane &a = lane[n & 1], &b = lane[~n & 1];
            CU(cudaMemcpyAsync(a.d_iq, iq, NSAMP * sizeof(short2), cudaMemcpyHostToDevice, a.st));
            a.compute(d_win);
            CU(cudaMemcpyAsync(rows[n & 1], a.d_row, NOUT * sizeof(float), cudaMemcpyDeviceToHost, a.st));
            CU(cudaEventRecord(a.done, a.st));
            if (n > 0) {
                CU(cudaEventSynchronize(b.done));
                occ.update(rows[~n & 1]);
            }
        } else {
            Lane &a = lane[0];
            CU(cudaMemcpy(a.d_iq, iq, NSAMP * sizeof(short2), cudaMemcpyHostToDevice));
            a.compute(d_win);
            CU(cudaDeviceSynchronize());
            CU(cudaMemcpy(rows[0], a.d_row, NOUT * sizeof(float), cudaMemcpyDeviceToHost));
            occ.update(rows[0]);
        }
        if ((n + 1) % 250 == 0) printf("block %d  occupancy %.3f %%\n", n + 1, occ.percent());
    }
    CU(cudaDeviceSynchronize());
    double ms = (seconds() - t0) * 1e3 / (steps - warm);
    if (fixed && steps > 0) occ.update(rows[(steps - 1) & 1]);
    printf("final occupancy %.3f %%, %.1f Msamples per block\n", occ.percent(), NSAMP / 1e6);
    printf("round_ms %.4f\n", ms);
    return 0;
}
