import type { FastifyInstance } from 'fastify'
import { createRemedies } from '../plugins/remedies.ts'
import type { AccessRule } from '../schemas/options.ts'
import {
  FindAccountQuerySchema, FoundAccountDataSchema, SignInAnswerDataSchema, SignInQuerySchema, TokenPreviewDataSchema, TokenPreviewQuerySchema
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
