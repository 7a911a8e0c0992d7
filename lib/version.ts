import { readFileSync } from 'node:fs'

/** The version in our package.json, which is one folder above the sources and two above the build. */
export function readVersion (): string {
  for (const path of ['../package.json', '../../package.json']) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'))
      if (name === 'fastify-identity') return version
    } catch {
      // The file is at the other path.
    }
  }
  return '0.0.0'
}
