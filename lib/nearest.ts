/** Levenshtein distance. */
function distance (from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const swap = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1)
      next[j] = Math.min(swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1)
    }
    row = next
  }
  return row[to.length] ?? 0
}

/** The most similar name, unless more than a third of the text differs. */
export function findNearest (text: string, names: readonly string[]): string | undefined {
  const short = text.slice(0, 64)
  let best: string | undefined
  let least = Math.floor(short.length / 3) + 1
  for (const name of names) {
    const edits = distance(short, name)
    if (edits < least) [best, least] = [name, edits]
  }
  return best
}
