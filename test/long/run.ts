// `npm run test:long`: tests that take too long for every change. Each file exports run(), which prints its figures or
// resolves to a line of them. It resolves to false or rejects on a failure. Add new files here.
const LONG = ['./imports.ts', './import-verdicts.ts', './backup.ts', './kill.ts', './events.ts', './lists.ts', './mails.ts', './notices.ts', './notice-times.ts', './interleavings.ts', './response-times.ts', './refusal-times.ts', './webhooks.ts', './moves.ts', './mongo-cuts.ts', './rolling-shutdown.ts', './liveness.ts', './properties.ts', './sizes.ts', './secrets.ts', './upstreams.ts', './resource-servers.ts', './forward-browsers.ts']

for (const file of LONG) {
  const { run } = await import(file) as { run: () => Promise<string | boolean> }
  const begin = performance.now()
  try {
    const result = await run()
    if (result === false) process.exitCode = 1
    const seconds = Math.round((performance.now() - begin) / 1_000)
    console.log(typeof result === 'string' ? `ok ${result} (${seconds} s)` : `${file}: ${seconds} s`)
  } catch (error) {
    process.exitCode = 1
    console.log(`not ok ${file}:`, error)
  }
}
