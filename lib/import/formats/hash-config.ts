import type { HashConfig } from './source.ts'

const NAMES = { signer_key: 'base64_signer_key', salt_separator: 'base64_salt_separator', rounds: 'rounds', memory_cost: 'mem_cost' } as const

/**
 * Reads the parameters of a Firebase project's password hashes, as its console shows them (`hash_config { ... }`), or the same as JSON.
 * @returns the name of the parameter that is missing, if one is
 */
export function readHashConfig (text: string): HashConfig | string {
  const found: Record<string, string> = {}
  for (const [name, shown] of Object.entries(NAMES)) {
    const value = new RegExp(String.raw`\b${shown}"?\s*[:=]\s*"?([\w+/=-]+)`).exec(text)?.[1]
    if (value === undefined) return shown
    found[name] = value
  }
  const { signer_key: signer = '', salt_separator: separator = '', rounds, memory_cost: memory } = found
  return { signer_key: signer, salt_separator: separator, rounds: Number(rounds), memory_cost: Number(memory) }
}
