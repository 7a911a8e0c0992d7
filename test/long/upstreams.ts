import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Sign-ins with providers of others, unmodified, in Chromium. Those that are not on this machine are skipped, and the line says so. */
export async function run (): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [join(import.meta.dirname, 'upstreams/all.ts')], { maxBuffer: 1e8 }).catch((error: { stdout: string }) => {
    throw new Error(`sign-ins with other providers:\n${error.stdout}`)
  })
  const kinds = [...stdout.matchAll(/^ {4}ok \d+ - (.*?)(?: # (SKIP.*?|time=.*))?(?: \{)?$/gm)].map(([, name, rest = '']) => rest.startsWith('SKIP') ? `${name} (skipped: ${rest.slice(5)})` : name)
  return `sign-ins with other providers: ${kinds.length === 0 ? 'skipped without a Chromium' : kinds.join('; ')}`
}
