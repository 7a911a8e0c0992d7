import { buildApp } from '../../app.ts'
import { readConfig } from '../../config.ts'
import { LogOutput } from '../../cli/process/log-output.ts'
import { SECRET_KEY } from '../seed.ts'
import { readOptions, serve } from './serve.ts'

// The service as `npm start` runs it, with its log, ids of requests and bridge.

const { database } = readOptions<{ database: string }>()
await serve(await buildApp(readConfig({ NODE_ENV: 'production', DATABASE_URL: database, IDENTITY_SECRET_KEY: SECRET_KEY }), { logStream: new LogOutput(process.stdout.fd) }))
