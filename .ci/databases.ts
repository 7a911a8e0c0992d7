/**
 * The databases of a test run on MongoDB, which its files share: see `test/helpers/mongo-database.ts`. A folder has a file for each that is
 * free, and the names of all begin with the folder's.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

export function createPool (): string {
  const folder = join(tmpdir(), `identity_run_${randomBytes(6).toString('hex')}`)
  mkdirSync(folder)
  return folder
}

/** Drops the databases of a run, also those of files that were killed. */
export async function dropPool (folder: string, server: string | undefined): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  if (server === undefined || server === '') return
  const { MongoClient } = await import('mongodb')
  const client = new MongoClient(server)
  try {
    const { databases } = await client.db('admin').admin().listDatabases({ nameOnly: true })
    for (const { name } of databases) if (name.startsWith(basename(folder))) await client.db(name).dropDatabase()
  } finally {
    await client.close()
  }
}
