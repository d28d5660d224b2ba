"""What `unified finetune` does beside one fine-tuning."""
