import { readFileSync } from 'node:fs'
import { READERS } from '../../../../lib/import/formats/index.ts'
import type { FormatOptions } from '../../../../lib/import/formats/source.ts'
import type { ImportItem } from '../../../../schemas/import.ts'

export const readFixture = (name: string): Buffer => readFileSync(new URL(`../../../fixtures/import/${name}`, import.meta.url))

/** Reads a file that arrives in pieces of this size. */
export async function readAll (format: string, content: string | Buffer, options: Partial<FormatOptions> = {}, size = 64 * 1024): Promise<ImportItem[]> {
  const bytes = Buffer.from(content as string)
  async function * pieces (): AsyncGenerator<Buffer> {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
  }
  const items: ImportItem[] = []
  for await (const batch of READERS[format]!(pieces(), { source: format, withoutFactors: false, issuers: {}, ...options })) items.push(...batch)
  return items
}
