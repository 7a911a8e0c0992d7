import type { FastifyInstance } from 'fastify'
import { mayCall } from '../plugins/access.ts'
import { createRemedies } from '../plugins/remedies.ts'
import type { AccessRule } from '../schemas/options.ts'
import {
  FindAccountQuerySchema, FindQuerySchema, FoundAccountDataSchema, FoundDataSchema, SignInAnswerDataSchema,
  SignInQuerySchema, TokenPreviewDataSchema, TokenPreviewQuerySchema
} from '../schemas/answers.ts'
import { createRows, data } from './rows.ts'
import type { RouteSettings } from './settings.ts'

/** Answers for operators: why somebody cannot sign in, and what a token would say (docs/support.md). */
export async function answerRoutes (app: FastifyInstance, { access, ...settings }: RouteSettings & { access: Record<string, AccessRule> }): Promise<void> {
  const { answers } = app.identity
  const add = createRows(app, 'support', settings)
  const addRemedies = createRemedies(app, access)

  add('explainSignIn', 'GET /user/:userId/sign-in', 'Explain whether a user can sign in, and why not', {
    description: 'The judges that decide about sign-ins answer. It counts no attempt, changes nothing, and asks no other provider.',
    query: SignInQuerySchema,
    answer: data(SignInAnswerDataSchema, 'The answer.'),
    errors: ['ErrNotFound'],
    isRecorded: true,
    async run ({ request, params, query, actor }) {
      const found = await answers.explainSignIn(params.userId, query, actor)
      return { ...found, reasons: await addRemedies(request, found.reasons, found.user_id) }
    }
  })

  add('findAccount', 'GET /user/sign-in', 'Explain the same for a name that somebody types, also where no account has it', {
    query: FindAccountQuerySchema,
    answer: data(FoundAccountDataSchema, 'The answer.'),
    isRecorded: true,
    async run ({ request, query: { account, ...asked }, actor }) {
      const found = await answers.findAccount(account, asked, actor)
      return { ...found, reasons: await addRemedies(request, found.reasons, found.user_id) }
    }
  })

  add('find', 'GET /find', 'Find people, clients, sessions and events by whatever names them', {
    description: 'Exact hits come first: an id, an account or an address. Then come people and clients by the beginnings of words. Each is one that the ' +
      'caller may read, and clients, sessions and events are left out where the caller may not list them. A hit records no event: opening the person does.',
    query: FindQuerySchema,
    answer: data(FoundDataSchema, 'At most 20 hits.'),
    async run ({ request, query: { q }, actor }) {
      const may = (name: string): boolean => mayCall(app, request, name, { overrides: access, method: 'GET' })
      const hits = await answers.find(q, actor, { clients: may('listClients'), sessions: may('listSessionsOfUser'), events: may('listEvents') })
      return { hits }
    }
  })

  add('previewToken', 'GET /client/:clientId/token-preview', 'Show the claims that a person would get from a client', {
    description: 'Claims only: no token is issued, and nothing is signed. An event records it.',
    query: TokenPreviewQuerySchema,
    answer: data(TokenPreviewDataSchema, 'The claims, and why others are absent.'),
    errors: ['ErrNotFound'],
    isRecorded: true,
    async run ({ request, params, query }) {
      const preview = await answers.previewToken({ client_id: params.clientId, ...query })
      return { ...preview, reasons: await addRemedies(request, preview.reasons) }
    }
  })
}
