// `npm run test:long`: what takes too long for every change. Each file exports run(), which resolves to a line of
// figures and rejects when what it promises does not hold. Add yours to the list.
const LONG = ['./kill.ts']

for (const file of LONG) {
  const { run } = await import(file) as { run: () => Promise<string> }
  const begin = performance.now()
  console.log(`${await run()} (${Math.round((performance.now() - begin) / 1_000)} s)`)
}
