/** The server for tests of MongoDB, which are skipped without one. An empty variable counts as not set. */
export const MONGODB_URL = process.env.MONGODB_URL || undefined

/** Whether another run has the cases on SQLite: see CONTRIBUTING, "Tests". */
export const IS_ELSEWHERE = process.env.TEST_STORES === 'mongodb'
