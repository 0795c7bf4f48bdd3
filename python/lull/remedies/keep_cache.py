"""keep-cache: torch.cuda.empty_cache() in the loop does nothing

causes: allocator, host-sync
exact: yes
asks: yes
write: remove torch.cuda.empty_cache() from the loop
"""


def apply(trial):
    def patch(torch):
        original = torch.cuda.empty_cache

        def empty_cache():
            if len(trial.times) < 2 or not trial.changes("keep-cache"):
                return original()
            trial.where("keep-cache", "remove it from the loop")
            trial.did("keep-cache")
            return None
        torch.cuda.empty_cache = empty_cache
    trial.when_loaded("torch", patch)
