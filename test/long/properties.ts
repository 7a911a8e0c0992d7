import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

const ROOT = join(import.meta.dirname, '../..')
const FACTOR = 20

/** The property tests with more runs, and with a seed of today. A failure prints the seed and path to repeat it. */
export async function run (): Promise<string> {
  const seed = Math.floor(Date.now() / 86_400_000)
  const env = { ...process.env, PROPERTY_SEED: String(seed), PROPERTY_FACTOR: String(FACTOR), TAP_TIMEOUT: '3600' }
  const files = globSync('test/properties/*.test.ts', { cwd: ROOT })
  for (const file of files) {
    await promisify(execFile)(process.execPath, [file], { cwd: ROOT, env, maxBuffer: 1e9 }).catch((error: { stdout: string }) => {
      throw new Error(`${file} with PROPERTY_SEED=${seed} PROPERTY_FACTOR=${FACTOR}:\n${error.stdout}`)
    })
  }
  return `the property tests, ${FACTOR} times as many runs, seed ${seed}`
}
