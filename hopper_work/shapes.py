import random
def draw(seed, n, least=2e8, most=4e11):
    """Log-uniform sides; a third any number, a third multiples of 8, a third multiples of 64."""
    r = random.Random(seed); out = []
    while len(out) < n:
        unit = r.choice((1, 8, 64))
        s = tuple(max(1, round(2 ** r.uniform(4, 13.5) / unit)) * unit for _ in range(3))
        if least <= 2 * s[0] * s[1] * s[2] <= most and max(s[0]*s[1], s[0]*s[2], s[1]*s[2]) < 2**28: out.append(s)
    return out
if __name__ == '__main__':
    for seed in (1, 2): print(seed, draw(seed, 24))
