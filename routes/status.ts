import type { FastifyInstance } from 'fastify'
import { SettingsDataSchema, StatusDataSchema, StatusQuerySchema, TestMailDataSchema } from '../schemas/status.ts'
import type { ServiceStatus } from '../plugins/status.ts'
import { createRows, data } from './rows.ts'
import type { RouteSettings } from './settings.ts'

/** What administrators see of the service itself (docs/operations.md). */
export async function statusRoutes (
  app: FastifyInstance, { status, ...settings }: Pick<RouteSettings, 'writeLimit'> & { status: ServiceStatus }
): Promise<void> {
  const { accounts } = app.identity
  const add = createRows(app, 'status', settings)

  add('getStatus', 'GET /status', 'Get what needs attention now, and what to set up next', {
    query: StatusQuerySchema,
    answer: data(StatusDataSchema, 'The version, whether the service can serve, and both lists.'),
    run: ({ query: { held } }) => status.read(held === 'true')
  })

  add('listSettings', 'GET /settings', 'List the settings that this process uses, without secrets', {
    answer: data(SettingsDataSchema, 'Every setting, with where its value comes from.'),
    run: async () => ({ settings: await status.listSettings() })
  })

  add('sendTestMail', 'POST /mail/test', "Send a test email to the caller's own verified address", {
    description: 'Three an hour. The answer has its id: `GET /user/{userId}/mails` says what became of it.',
    answer: data(TestMailDataSchema, 'It was accepted, and is sent now.'),
    errors: ['ErrNotFound'],
    hasBody: false,
    run: async ({ actor }) => ({ mail_id: await accounts.sendOwnTest(actor) })
  })
}
