"""Fit an exact Gaussian process to soil-moisture probes with GPyTorch."""
import argparse
import gc
import statistics
import time
import warnings

import gpytorch
import torch

warnings.filterwarnings("ignore")


def make_probes(count=2500, seed=21):
    g = torch.Generator().manual_seed(seed)
    place = torch.rand(count, 3, generator=g)
    moisture = (torch.sin(5 * place[:, 0]) * torch.cos(4 * place[:, 1]) + 0.5 * torch.sin(9 * place[:, 2])
                + 0.25 * torch.randn(count, generator=g))
    return place, moisture


class SoilModel(gpytorch.models.ExactGP):
    def __init__(self, place, moisture, likelihood):
        super().__init__(place, moisture, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=3))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda")
    place, moisture = (v.to(device) for v in make_probes())
    likelihood = gpytorch.likelihoods.GaussianLikelihood(
        noise_constraint=gpytorch.constraints.GreaterThan(1e-2)).to(device)
    model = SoilModel(place, moisture, likelihood).to(device)
    model.train()
    likelihood.train()
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

    def iteration():
        optimizer.zero_grad()
        loss = -objective(model(place), moisture)
        loss.backward()
        optimizer.step()
        value = loss.item()
        del loss
        if not args.fixed:
            # the covariance matrices are large, give their memory back
            gc.collect()
            torch.cuda.empty_cache()
        return value

    times = []
    with gpytorch.settings.max_cholesky_size(10_000):
        for _ in range(5):
            iteration()
        start = time.perf_counter()
        while time.perf_counter() - start < 3.0:
            begin = time.perf_counter()
            value = iteration()
            times.append(time.perf_counter() - begin)
    print(f"iterations {len(times)} loss {value:.4f} noise {likelihood.noise.item():.4f}")
    print(f"round_ms {1e3 * statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
