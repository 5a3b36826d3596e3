"""The program that training tests run: a small model whose losses depend on everything a checkpoint must hold."""

PROGRAM = """
import time
import torch
import trackway.training as tw

with tw.session(config={"steps": 12, "every": 5}, seed=3) as s:
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Dropout(0.3), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40)
    data = torch.randn(101, 8, generator=torch.Generator().manual_seed(1))
    target = data.sum(1, keepdim=True).sin()
    cursor = tw.DataCursor(seed=s.seed, dataset_len=len(data), batch_size=12)
    model = s.prepare(model=model, optimizer=optimizer, lr_scheduler=scheduler, cursor=cursor)
    start = s.restore()
    print("starts at", start, flush=True)
    for step in range(start, s.config["steps"]):
        if step == s.config.get("hang_at", {}).get(str(s.rank)):
            time.sleep(600)
        indices = next(cursor)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(data[indices]), target[indices])
        loss.backward()
        optimizer.step()
        scheduler.step()
        s.report(step + 1, loss=loss, lr=scheduler.get_last_lr()[0])
        if (step + 1) % s.config["every"] == 0:
            print(s.checkpoint(step + 1).value, flush=True)
"""
