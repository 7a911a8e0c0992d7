import type { FastifyInstance } from 'fastify'
import type { Test } from 'tap'
import { startIdentity, type StartOptions, type TestKit } from '../../testing/index.ts'
import { createApp } from '../../testing/kit.ts'
import { reuseMongoDatabase } from './mongo-database.ts'
import { IS_ELSEWHERE, MONGODB_URL } from './mongodb.ts'
import { checkResponses } from './openapi.ts'
import './plain-threads.ts'

export type BuildOptions = Omit<StartOptions, 't' | 'app'> & { app?: FastifyInstance }

/** Starts the service for a test. Every response is checked against the OpenAPI document. */
export async function build (t: Test, { app = createApp(), ...options }: BuildOptions = {}): Promise<TestKit> {
  if (options.openapi !== false) checkResponses(app, (problem) => t.fail(problem), options.prefix)
  return await startIdentity({ ...options, t, app })
}

/** Starts the service on the store under test. */
export type Build = (t: Test, options?: Omit<BuildOptions, 'database' | 'store'>) => Promise<TestKit>

/**
 * Runs the cases on every store: on SQLite, and on MongoDB if MONGODB_URL is set.
 * @param run its last argument tells a large table which store it is on: see CONTRIBUTING, "Tests"
 */
export async function forEachStore (t: Test, run: (t: Test, build: Build, store: 'SQLite' | 'MongoDB') => Promise<unknown>): Promise<void> {
  if (!IS_ELSEWHERE) {
    await t.test('on SQLite', async (t) => {
      const database = `sqlite:${t.testdir()}/identity.db`
      await run(t, (t, options) => build(t, { ...options, database }), 'SQLite')
    })
  }
  await t.test('on MongoDB', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => {
    const database = reuseMongoDatabase(t, MONGODB_URL!)
    await run(t, (t, options) => build(t, { ...options, database }), 'MongoDB')
  })
}
