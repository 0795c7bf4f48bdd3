/*
 * For releases that link libmicrohttpd's archive: it names functions of GnuTLS, which are only
 * called for TLS, and the server does not use TLS. These replace them, so that the program does not
 * contain a TLS library it never uses.
 */
#ifdef LULL_NO_TLS

#define NOT_THERE(name)    \
	int name(void);    \
	int name(void)     \
	{                  \
		return -1; \
	}
#define NOTHING_TO_DO(name) \
	int name(void);     \
	int name(void)      \
	{                   \
		return 0;   \
	}

/* Called when the library is loaded and unloaded. */
NOTHING_TO_DO(gnutls_global_init)
NOTHING_TO_DO(gnutls_global_deinit)

NOT_THERE(gnutls_alpn_set_protocols)
NOT_THERE(gnutls_bye)
NOT_THERE(gnutls_certificate_allocate_credentials)
NOT_THERE(gnutls_certificate_free_credentials)
NOT_THERE(gnutls_certificate_server_set_request)
NOT_THERE(gnutls_certificate_set_dh_params)
NOT_THERE(gnutls_certificate_set_retrieve_function2)
NOT_THERE(gnutls_certificate_set_retrieve_function3)
NOT_THERE(gnutls_certificate_set_x509_key_mem)
NOT_THERE(gnutls_certificate_set_x509_key_mem2)
NOT_THERE(gnutls_certificate_set_x509_trust_mem)
NOT_THERE(gnutls_cipher_get)
NOT_THERE(gnutls_credentials_set)
NOT_THERE(gnutls_deinit)
NOT_THERE(gnutls_dh_params_deinit)
NOT_THERE(gnutls_dh_params_import_pkcs3)
NOT_THERE(gnutls_dh_params_init)
NOT_THERE(gnutls_handshake)
NOT_THERE(gnutls_init)
NOT_THERE(gnutls_malloc)
NOT_THERE(gnutls_priority_deinit)
NOT_THERE(gnutls_priority_init)
NOT_THERE(gnutls_priority_set)
NOT_THERE(gnutls_protocol_get_version)
NOT_THERE(gnutls_psk_allocate_server_credentials)
NOT_THERE(gnutls_psk_free_server_credentials)
NOT_THERE(gnutls_psk_set_server_credentials_function)
NOT_THERE(gnutls_record_check_pending)
NOT_THERE(gnutls_record_get_direction)
NOT_THERE(gnutls_record_recv)
NOT_THERE(gnutls_record_send)
NOT_THERE(gnutls_session_get_ptr)
NOT_THERE(gnutls_session_set_ptr)
NOT_THERE(gnutls_strerror)
NOT_THERE(gnutls_transport_set_int2)

#else

/* A file must hold something. */
typedef int lull_no_tls_unused;

#endif
