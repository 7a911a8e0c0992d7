import { readFileSync } from 'node:fs'

/** The version in our package.json: one folder up from the sources, two up from the build. */
export function readVersion (): string {
  for (const path of ['../package.json', '../../package.json']) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'))
      if (name === 'fastify-identity') return version
    } catch {
      // The other path has it.
    }
  }
  return '0.0.0'
}
