"""Parts of `unified finetune` besides a single fine-tuning."""
