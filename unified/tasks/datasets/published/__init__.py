"""Settings and figures of the papers for the tasks that ``unified finetune`` knows, one module a family."""
