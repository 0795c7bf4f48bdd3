"""compile: kernels are fused by torch.compile

causes: unfused-elementwise, fusion, launch-bound, host-compute, kernel-gap, short-kernels, gpu-bound, gil
group: compile
tolerance: 0.02
warmup: 13
limit: 600
asks: yes
write: model.compile() after the model is made

The modules with parameters that the program calls are compiled, of more than 8 the first one that comes for the fourth time;
where whole runs are measured, the first. Functions outside of modules are not.
"""


def apply(trial):
    trial.compile_model("compile", "model.compile()")
