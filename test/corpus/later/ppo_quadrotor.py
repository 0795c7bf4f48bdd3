"""PPO on a planar quadrotor hover task.  Small actor-critic, several environments."""
import argparse
import time

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Normal


class PlanarQuadrotor:
    """State: x, z, theta, vx, vz, omega.  Action: left and right thrust offsets."""

    DT = 0.02
    MAX_STEPS = 400

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.state = np.zeros(6, dtype=np.float32)
        self.goal = np.zeros(2, dtype=np.float32)
        self.t = 0

    def reset(self):
        self.state = self.rng.uniform(-0.5, 0.5, 6).astype(np.float32)
        self.goal = self.rng.uniform(-1.0, 1.0, 2).astype(np.float32)
        self.t = 0
        return self._obs()

    def _obs(self):
        x, z, th, vx, vz, om = self.state
        return np.array([self.goal[0] - x, self.goal[1] - z, np.sin(th), np.cos(th),
                         vx, vz, om, self.t / self.MAX_STEPS], dtype=np.float32)

    def step(self, action):
        left, right = np.clip(action, -1.0, 1.0)
        x, z, th, vx, vz, om = self.state
        thrust = 9.81 + 4.0 * (left + right)
        torque = 6.0 * (right - left)
        vx += self.DT * (-thrust * np.sin(th))
        vz += self.DT * (thrust * np.cos(th) - 9.81)
        om += self.DT * torque
        self.state = np.array([x + self.DT * vx, z + self.DT * vz, th + self.DT * om,
                               vx, vz, om], dtype=np.float32)
        self.t += 1
        dist = float(np.hypot(self.goal[0] - self.state[0], self.goal[1] - self.state[1]))
        reward = 1.0 - dist - 0.02 * float(left * left + right * right) - 0.05 * abs(float(om))
        done = dist > 4.0 or abs(float(self.state[2])) > 1.5 or self.t >= self.MAX_STEPS
        return self._obs(), reward, done


class ActorCritic(nn.Module):
    def __init__(self, obs_dim=8, act_dim=2, hidden=256):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(),
                                   nn.Linear(hidden, hidden), nn.Tanh(),
                                   nn.Linear(hidden, act_dim))
        self.critic = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(),
                                    nn.Linear(hidden, hidden), nn.Tanh(),
                                    nn.Linear(hidden, 1))
        self.log_std = nn.Parameter(torch.full((act_dim,), -0.5))

    def dist(self, obs):
        return Normal(self.actor(obs), self.log_std.exp())

    @torch.no_grad()
    def act(self, obs):
        d = self.dist(obs)
        action = d.sample()
        return action, d.log_prob(action).sum(-1), self.critic(obs).squeeze(-1)


class Rollout:
    def __init__(self, horizon, n_envs, obs_dim=8, act_dim=2):
        self.obs = np.zeros((horizon, n_envs, obs_dim), np.float32)
        self.act = np.zeros((horizon, n_envs, act_dim), np.float32)
        self.logp = np.zeros((horizon, n_envs), np.float32)
        self.val = np.zeros((horizon, n_envs), np.float32)
        self.rew = np.zeros((horizon, n_envs), np.float32)
        self.done = np.zeros((horizon, n_envs), np.float32)

    def advantages(self, last_val, gamma=0.99, lam=0.95):
        adv = np.zeros_like(self.rew)
        running = np.zeros_like(last_val)
        for t in reversed(range(len(self.rew))):
            nxt = last_val if t == len(self.rew) - 1 else self.val[t + 1]
            alive = 1.0 - self.done[t]
            delta = self.rew[t] + gamma * nxt * alive - self.val[t]
            running = delta + gamma * lam * alive * running
            adv[t] = running
        return adv, adv + self.val


def collect(policy, envs, obs, buf, device, batched):
    for t in range(len(buf.rew)):
        buf.obs[t] = obs
        if batched:
            a, lp, v = policy.act(torch.from_numpy(obs).to(device))
            packed = torch.cat([a, lp.unsqueeze(1), v.unsqueeze(1)], dim=1).cpu().numpy()
            buf.act[t], buf.logp[t], buf.val[t] = packed[:, :2], packed[:, 2], packed[:, 3]
        else:
            for i in range(len(envs)):
                a, lp, v = policy.act(torch.as_tensor(obs[i], device=device))
                buf.act[t, i] = a.cpu().numpy()
                buf.logp[t, i] = lp.item()
                buf.val[t, i] = v.item()
        nxt = np.empty_like(obs)
        for i, env in enumerate(envs):
            nxt[i], buf.rew[t, i], done = env.step(buf.act[t, i])
            buf.done[t, i] = done
            if done:
                nxt[i] = env.reset()
        obs = nxt
    return obs


def update(policy, opt, buf, last_val, device, epochs, minibatches, clip=0.2):
    adv, ret = buf.advantages(last_val)
    n = adv.size
    to = lambda a: torch.from_numpy(a.reshape(n, *a.shape[2:])).to(device)
    obs, act, logp_old, adv, ret = map(to, (buf.obs, buf.act, buf.logp, adv, ret))
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    for _ in range(epochs):
        for idx in torch.randperm(n, device=device).chunk(minibatches):
            d = policy.dist(obs[idx])
            ratio = (d.log_prob(act[idx]).sum(-1) - logp_old[idx]).exp()
            pg = -torch.min(ratio * adv[idx], ratio.clamp(1 - clip, 1 + clip) * adv[idx]).mean()
            vf = (policy.critic(obs[idx]).squeeze(-1) - ret[idx]).pow(2).mean()
            loss = pg + 0.5 * vf - 0.003 * d.entropy().sum(-1).mean()
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            opt.step()
    return loss


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--iterations", type=int, default=100)
    ap.add_argument("--envs", type=int, default=8)
    ap.add_argument("--horizon", type=int, default=16)
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--minibatches", type=int, default=2)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda")
    policy = ActorCritic().to(device)
    opt = torch.optim.Adam(policy.parameters(), lr=3e-4, eps=1e-5)
    envs = [PlanarQuadrotor(seed) for seed in range(args.envs)]
    obs = np.stack([e.reset() for e in envs])
    buf = Rollout(args.horizon, args.envs)

    warm = args.iterations // 4
    for it in range(args.iterations):
        if it == warm:
            torch.cuda.synchronize()
            start = time.perf_counter()
        obs = collect(policy, envs, obs, buf, device, args.fixed)
        with torch.no_grad():
            last_val = policy.critic(torch.from_numpy(obs).to(device)).squeeze(-1).cpu().numpy()
        loss = update(policy, opt, buf, last_val, device, args.epochs, args.minibatches)
        if it % 20 == 0:
            print(f"iter {it:4d}  mean reward {buf.rew.mean():+.3f}  loss {loss.item():.4f}", flush=True)
    torch.cuda.synchronize()
    print(f"round_ms {(time.perf_counter() - start) * 1000 / (args.iterations - warm):.3f}")


if __name__ == "__main__":
    main()
