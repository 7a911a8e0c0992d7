import { mkdirSync, writeFileSync } from 'node:fs'
import { Bench, Server, type Case } from './bench.ts'
import { CASES } from './cases/index.ts'
import { describeMachine } from './machine.ts'
import { toMarkdown } from './report.ts'
import { USAGE, readSettings, type Settings } from './settings.ts'
import type { CaseResult } from './types.ts'

/** Measures all rows one after the other in each round, so that a disturbance of the machine affects all of them. */
async function runCase (bench: Bench, { name, title, notes = [], columns, compared, baseline, servers, scenario, listDetails }: Case): Promise<CaseResult | null> {
  const specs = await servers(bench)
  const started = new Map(specs.map((spec) => [spec.label, new Server(spec)]))
  try {
    for (const { child } of started.values()) await child.ready
    const subjects = await scenario(bench, started)
    if (subjects.length === 0) return null
    const rows = subjects.map((subject) => ({ label: subject.label, baseline: subject.baseline ?? baseline, samples: [] as CaseResult['rows'][0]['samples'] }))
    const { rounds, warmups } = bench.settings
    for (let round = -warmups; round < rounds; round++) {
      for (const [index, subject] of subjects.entries()) {
        const sample = await subject.measure()
        if (round >= 0) rows[index]!.samples.push(sample)
      }
      bench.log(`${name}: ${round < 0 ? 'warm-up' : `round ${round + 1} of ${rounds}`}`)
    }
    return { name, title, notes, columns, compared, baseline, rows, ...(listDetails && { details: await listDetails(bench) }) }
  } finally {
    for (const { child } of started.values()) await child.stop()
  }
}

function choose ({ only }: Settings): Case[] {
  const unknown = only.filter((name) => !CASES.some((one) => one.name === name))
  if (unknown.length > 0) throw new Error(`no such case: ${unknown.join(', ')}; expected some of ${CASES.map(({ name }) => name).join(', ')}`)
  return only.length === 0 ? CASES : CASES.filter(({ name }) => only.includes(name))
}

async function main (): Promise<void> {
  let settings, cases
  try {
    settings = readSettings(process.argv.slice(2))
    cases = choose(settings)
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`)
    process.exitCode = 1
    return
  }
  const bench = new Bench(settings)
  const wrk = bench.wrkVersion ?? 'not installed (Debian package wrk): all rates are by our own driver, which makes a fast server look slower'
  if (bench.wrkVersion === null) bench.log(`wrk is ${wrk}`)
  const results: CaseResult[] = []
  const failures: { name: string, message: string }[] = []
  for (const one of cases) {
    try {
      const result = await runCase(bench, one)
      if (result !== null) results.push(result)
    } catch (error) {
      failures.push({ name: one.name, message: (error as Error).message })
      bench.log(`${one.name} failed: ${(error as Error).stack}`)
    }
  }
  await bench.close()

  const { mongodbUrl, ...shown } = settings
  const report = { machine: { ...describeMachine(), wrk }, settings: { ...shown, mongodb: mongodbUrl !== undefined }, results, failures }
  const markdown = toMarkdown(report)
  const directory = new URL('results/', import.meta.url)
  mkdirSync(directory, { recursive: true })
  const name = new Date().toISOString().slice(0, 19).replaceAll(':', '')
  writeFileSync(new URL(`${name}.json`, directory), JSON.stringify(report, null, 1))
  writeFileSync(new URL(`${name}.md`, directory), markdown)
  process.stdout.write(markdown)
  if (failures.length > 0) process.exitCode = 1
}

await main()
